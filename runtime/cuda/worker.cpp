//===- worker.cpp - A thread that does what it is given -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/worker.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace drt::cuda {

struct Worker::State {
  std::mutex mutex;
  std::condition_variable given, changed;
  std::deque<std::function<void()>> jobs;
  uint64_t posted = 0, finished = 0;
  std::exception_ptr failure;
  uint64_t failed = 0; // the job that threw it
  bool quit = false;
  std::thread thread;

  bool done(uint64_t job) const { return finished >= job; }
  bool idle() const { return done(posted); }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      given.wait(lock, [this] { return quit || !jobs.empty(); });
      if (jobs.empty())
        return;
      const std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      std::exception_ptr thrown;
      try {
        job();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      ++finished;
      if (thrown) {
        failure = thrown;
        failed = finished;
        finished += jobs.size();
        jobs.clear();
      }
      changed.notify_all();
    }
  }
};

Worker::Worker() : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_] { state->run(); });
}

Worker::~Worker() {
  bool idle;
  {
    std::lock_guard lock(state_->mutex);
    state_->quit = true;
    state_->jobs.clear();
    idle = state_->idle();
  }
  state_->given.notify_all();
  if (idle)
    state_->thread.join();
  else
    state_->thread.detach();
}

uint64_t Worker::post(std::function<void()> job) {
  std::lock_guard lock(state_->mutex);
  if (state_->failure)
    ++state_->finished;
  else
    state_->jobs.push_back(std::move(job));
  state_->given.notify_one();
  return ++state_->posted;
}

bool Worker::done(uint64_t job) const {
  std::lock_guard lock(state_->mutex);
  return state_->done(job);
}

bool Worker::idle() const {
  std::lock_guard lock(state_->mutex);
  return state_->idle();
}

void Worker::wait(uint64_t job) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done(job); });
  if (state_->failure && job >= state_->failed)
    std::rethrow_exception(state_->failure);
}

bool Worker::waitFor(uint64_t job, double seconds) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return state_->done(job); });
}

} // namespace drt::cuda

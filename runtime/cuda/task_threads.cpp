//===- task_threads.cpp - How a task's host threads work and wait ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "cuda/task.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace drt::cuda {
namespace {

// A thread that hangs in a library, since another one has failed, is left behind after so many seconds.
constexpr double hangSeconds = 2;

double secondsSince(int64_t ns) { return static_cast<double>(nowNs() - ns) * 1e-9; }

std::string shortSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

// Between two looks at a device: soon at first, then without keeping a core from others.
void pause(int looks) {
  constexpr int busyLooks = 200, steps = 20;
  if (looks < busyLooks)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50 * std::min(1 + (looks - busyLooks) / steps, 20)));
}

} // namespace

// The first to fail says so at once: others may hang since it does not come. Who comes back after the task is gone says
// nothing.
std::function<void()> CudaTask::attempt(std::function<void()> work) {
  return [this, work = std::move(work), life = living_.life] {
    try {
      work();
    } catch (const std::exception &error) {
      std::lock_guard lock(life->mutex);
      if (!life->over)
        fail(error.what());
    }
  };
}

void CudaTask::inEachThread(const std::function<void(int32_t)> &work) {
  if (failed())
    breakOff();
  if (workers_.empty()) {
    attempt([work] { work(0); })();
  } else {
    std::vector<uint64_t> jobs;
    for (size_t i = 0; i < workers_.size(); ++i)
      jobs.push_back(workers_[i]->post(attempt([work, i] { work(static_cast<int32_t>(i)); })));
    int64_t failedNs = 0;
    for (size_t i = 0; i < workers_.size(); ++i)
      while (!workers_[i]->waitFor(jobs[i], 0.05)) {
        if (failed() && failedNs == 0)
          failedNs = nowNs();
        if (failedNs != 0 && secondsSince(failedNs) > hangSeconds)
          break;
      }
  }
  if (failed())
    breakOff();
}

void CudaTask::inEachReplica(const std::function<void(DeviceReplica &)> &work) {
  inEachThread([this, work](int32_t i) { work(*replicas_[static_cast<size_t>(i)]); });
}

bool CudaTask::atRest() const {
  const auto idle = [](const std::unique_ptr<Worker> &worker) { return worker->idle(); };
  return std::all_of(workers_.begin(), workers_.end(), idle) && (!communication_ || communication_->idle());
}

void CudaTask::abortRanks() noexcept {
  std::vector<ncclComm_t> ranks;
  for (const std::unique_ptr<DeviceReplica> &replica : replicas_)
    if (replica)
      ranks.push_back(replica->giveUp());
  NcclRank::abort(ranks);
}

// An abort takes as long as the device does, and the other tasks' ranks see at once that one is gone: they hear why
// before, and say that instead of NCCL's words.
void CudaTask::breakOff() {
  const std::string why = config_.failing ? config_.failing(whyFailed()) : whyFailed();
  abortRanks();
  throw Error(why);
}

void CudaTask::await(const Wait &wait) {
  const int64_t begunNs = nowNs();
  int64_t warnedNs = begunNs, togetherNs = 0;
  try {
    for (int looks = 0; !wait.done(); ++looks) {
      if (failed())
        break;
      if (config_.stallWarning > 0 && secondsSince(warnedNs) > config_.stallWarning) {
        warn("stalled for " + shortSeconds(secondsSince(begunNs)) + " in " + wait.what());
        warnedNs = nowNs();
      }
      if (togetherNs == 0 && wait.together && wait.together())
        togetherNs = nowNs();
      if (togetherNs != 0 && secondsSince(togetherNs) > config_.failureTimeout)
        throw Error(wait.what() + " has not ended after " + shortSeconds(config_.failureTimeout) +
                    ", though every rank has begun it: a device or the network between them hangs. A step that takes "
                    "longer needs a longer --failure-timeout");
      pause(looks);
    }
  } catch (const std::exception &error) {
    fail(error.what());
  }
  if (failed())
    breakOff();
}

// ---- Other tasks -------------------------------------------------------------------

uint64_t CudaTask::communicate(std::function<void()> collective) {
  return lastJob_ = communication_->post(attempt(std::move(collective)));
}

void CudaTask::startSum(double *values, int64_t count) {
  if (!communicator_)
    return;
  sum_ = std::make_shared<std::vector<double>>(values, values + count);
  sumOf_ = values;
  sumJob_ = communicate([communicator = communicator_, step = waited_.step, sum = sum_] {
    communicator->describe(step, "the loss");
    communicator->all_reduce_sum(sum->data(), static_cast<int64_t>(sum->size()), DRT_F64);
  });
}

void CudaTask::finishSum() {
  if (!communicator_)
    return;
  communication_->wait(sumJob_);
  if (failed())
    breakOff();
  if (sum_)
    std::copy(sum_->begin(), sum_->end(), sumOf_);
  sum_.reset();
}

} // namespace drt::cuda

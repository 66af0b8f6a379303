//===- signals.cpp - A wish to stop ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/signals.h"
#include "checkpoint/output_file.h"
#include "core/timeline.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <semaphore.h>
#include <unistd.h>

namespace drt {
namespace {

std::atomic<int> caught{0};
std::atomic<bool> notes{false}; // see catchSignals

// What the watching thread sleeps on.
struct Wake {
  sem_t semaphore;
  Wake() { sem_init(&semaphore, 0, 0); }
};
Wake &wake() {
  static Wake made;
  return made;
}

void note(int number) {
  if (caught.exchange(number, std::memory_order_relaxed) != 0)
    _exit(128 + number);
  sem_post(&wake().semaphore);
}

// What the signal does to a process that does not catch it: nothing, where it is ignored.
void actByDefault(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(number);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

// A step may take long, and the one that was under way may have just begun.
constexpr int64_t graceNs = 4'000'000'000;
constexpr int graceSteps = 2;

} // namespace

void ignoreWriteSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

// oneDNN's matmuls use the stack's register for other things, and what the kernel puts where it points when a signal is
// handled destroys the heap: no thread that computes may be given one.
void takeSignals() {
  static const bool taken = [] {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    std::thread([wanted] {
      for (int number = 0;;)
        if (sigwait(&wanted, &number) == 0)
          notes.load() ? note(number) : actByDefault(number);
    }).detach();
    return true;
  }();
  (void)taken;
}

void catchSignals() { notes.store(true); }

int caughtSignal() { return caught.load(std::memory_order_relaxed); }

StopDeadline::StopDeadline() : thread_([this] { watch(); }) {}

StopDeadline::~StopDeadline() {
  quit_.store(true);
  sem_post(&wake().semaphore);
  thread_.join();
}

void StopDeadline::resume() {
  progressNs_.store(nowNs(), std::memory_order_relaxed);
  stepping_.store(true, std::memory_order_release);
}

void StopDeadline::stepDone(int64_t nanoseconds) {
  progressNs_.store(nowNs(), std::memory_order_relaxed);
  if (nanoseconds > longestNs_.load(std::memory_order_relaxed))
    longestNs_.store(nanoseconds, std::memory_order_relaxed);
}

void StopDeadline::watch() {
  while (!quit_.load() && caughtSignal() == 0)
    sem_wait(&wake().semaphore);
  const int64_t caughtNs = nowNs();
  for (; !quit_.load(); std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    const int64_t grace = graceNs + graceSteps * longestNs_.load(std::memory_order_relaxed);
    const int64_t since = std::max(caughtNs, progressNs_.load(std::memory_order_relaxed));
    if (!stepping_.load(std::memory_order_acquire) || nowNs() - since < grace)
      continue;
    removeUnfinishedFiles();
    std::fprintf(stderr,
                 "error: ended by signal %d without a last checkpoint: the step that was under way has not ended "
                 "within %.0f s\n",
                 caughtSignal(), static_cast<double>(grace) * 1e-9);
    _exit(128 + caughtSignal());
  }
}

} // namespace drt

//===- signals.cpp - A wish to stop ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/signals.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace drt {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free, "read and written by a signal handler");

void note(int number) {
  if (caught.exchange(number, std::memory_order_relaxed) != 0)
    _exit(128 + number);
}

} // namespace

void catchSignals() {
  struct sigaction action = {};
  action.sa_handler = note;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

int caughtSignal() { return caught.load(std::memory_order_relaxed); }

} // namespace drt

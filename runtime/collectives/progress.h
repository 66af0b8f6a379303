//===- progress.h - Where a task is among its collectives -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Written by the thread that issues collectives, read by the one that watches.
// All tasks issue the same collectives in the same order, so comparing the counts
// says who is late.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_PROGRESS_H
#define DRT_COLLECTIVES_PROGRESS_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace drt {

struct Progress {
  std::atomic<int64_t> step{-1};
  std::atomic<const char *> name{""};
  std::atomic<int64_t> begun{0}; // collectives
  std::atomic<bool> inside{false};
  std::atomic<std::chrono::steady_clock::rep> since{0}; // when the last one began
};

/// Marks one collective.
class InCollective {
public:
  explicit InCollective(Progress &p) : progress(p) {
    progress.since.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    progress.begun.fetch_add(1, std::memory_order_relaxed);
    progress.inside.store(true, std::memory_order_release);
  }
  ~InCollective() { progress.inside.store(false, std::memory_order_release); }
  InCollective(const InCollective &) = delete;
  InCollective &operator=(const InCollective &) = delete;

private:
  Progress &progress;
};

} // namespace drt

#endif // DRT_COLLECTIVES_PROGRESS_H

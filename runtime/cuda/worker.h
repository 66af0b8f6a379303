//===- worker.h - A thread that does what it is given ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_WORKER_H
#define DRT_CUDA_WORKER_H

#include <cstdint>
#include <functional>
#include <memory>

namespace drt::cuda {

/// Does jobs in their order. After one has thrown, those behind it are left out. One thread gives and waits.
class Worker {
public:
  Worker();
  /// A job that hangs (in a library that waits for a lost rank) is left behind: the process is about to end.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Returns the job's number.
  uint64_t post(std::function<void()> job);

  /// Whether the job is done, or left out.
  bool done(uint64_t job) const;

  /// Waits for it; throws what it or a job before it threw.
  void wait(uint64_t job);
  /// For `seconds` at most. Returns done(job), throws nothing.
  bool waitFor(uint64_t job, double seconds);
  /// Whether every job is done, or left out.
  bool idle() const;

private:
  struct State;
  std::shared_ptr<State> state_; // the thread has it, too
};

} // namespace drt::cuda

#endif // DRT_CUDA_WORKER_H

//===- host_calls.h - Routines of the host in a device's work -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What devices have no code for (linear algebra, CTC losses, candidate sampling, assertions) runs on the host, in the
// order of the replica's stream: its inputs are copied to pinned memory, a function of the host's computes, its results
// are copied back. All three are captured.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_HOST_CALLS_H
#define DRT_CUDA_HOST_CALLS_H

#include "cuda/handles.h"
#include "cuda/replica.h"

#include <atomic>
#include <deque>
#include <vector>

namespace drt::cuda {

class HostCalls {
public:
  /// A tensor on the device and how many bytes of it are copied; of none the address is the host's own.
  struct Tensor {
    void *address;
    int64_t bytes;
  };

  /// While a program is prepared: a call will need memory for these. Calls of a stream use it one after the other.
  void reserve(const std::vector<Tensor> &tensors);
  /// When all have been reserved.
  void allocate() { memory_ = PinnedMemory(bytes_); }

  /// Before an entry's code runs again, whose calls are those of the time before.
  void begin(const drt_entry &entry);
  /// The next call of the entry, on `stream`. The first `inputs` of the tensors are read.
  void enqueue(CUstream stream, int32_t scope, drt_routine routine, const int64_t *numbers,
               const std::vector<Tensor> &tensors, size_t inputs);

  /// The entry is about to be enqueued: the number of the run.
  int64_t enqueueRun(const drt_entry &entry);
  /// Throws what a routine has failed with in this run, which has ended, or in one before it. Those behind it were
  /// passed over.
  void check(int64_t run) const;

private:
  struct Call {
    HostCalls *calls;
    const drt_entry *entry;
    bool isFirst; // of its run
    int32_t scope;
    drt_routine routine;
    const int64_t *numbers;
    std::vector<void *> tensors;
  };
  static void CUDA_CB run(void *call);
  static bool leaves(const Call &call);

  int64_t bytes_ = 0;
  PinnedMemory memory_;
  const drt_entry *entry_ = nullptr;
  /// By entry: calls stay where they are, since graphs name them.
  std::vector<std::pair<const drt_entry *, std::deque<Call>>> calls_;
  size_t next_ = 0;
  std::vector<const drt_entry *> entries_; // that have calls
  /// Runs of such entries that were enqueued, and that the stream has begun.
  int64_t enqueued_ = 0, begun_ = 0;
  /// What routines see of a replica: where they leave, and with what.
  Replica hostSide_{0};
  /// The run in which it failed; 0: none.
  std::atomic<int64_t> failed_ = 0;
};

} // namespace drt::cuda

#endif // DRT_CUDA_HOST_CALLS_H

//===- feeds.h - A replica's feeds on their way to its device -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_FEEDS_H
#define DRT_CUDA_FEEDS_H

#include "core/device_memory.h"
#include "cuda/handles.h"
#include "cuda/spans.h"

#include <vector>

namespace drt::cuda {

/// What the launcher has given for one feed.
struct GivenFeed {
  const char *share0 = nullptr;
  int64_t shareBytes = 0;
  uint64_t version = 0; // counts what was given
};

/// Two sets of buffers in the device's memory, and as much pinned memory: rows are copied into the pinned memory, and
/// from there on a stream of their own, while the device computes from the other set.
class FeedBuffers {
public:
  FeedBuffers() = default;
  FeedBuffers(const drt_program &program, TimelineRow *row);

  /// Where the entry finds its feeds.
  void addresses(const drt_entry &entry, int set, std::vector<const void *> &feeds) const;

  /// Begins to copy what is new to the set; behind it `computing` waits. `done`: after which the set's last reader has
  /// ended.
  void send(const drt_entry &entry, int set, int64_t step, const std::vector<GivenFeed> &given, int32_t localReplica,
            const Event &done, CUstream computing);

  /// To the timeline; when the set's last run has ended.
  void report(int set, const Clock &clock) const;

private:
  struct Set {
    char *device = nullptr;
    char *pinned = nullptr;
    Event sent;
    // What lies in it.
    const drt_entry *entry = nullptr;
    std::vector<uint64_t> versions;
    bool copied = false; // for its last run
    int64_t step = 0;
    Span span;
  };

  Stream stream_;
  DeviceMemory memory_;
  PinnedMemory pinned_;
  Set sets_[feedSets];
  TimelineRow *row_ = nullptr;
};

} // namespace drt::cuda

#endif // DRT_CUDA_FEEDS_H

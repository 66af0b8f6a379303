//===- replica.h - What the runtime keeps for one replica -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_REPLICA_H
#define DRT_CPU_REPLICA_H

#include "core/delays.h"
#include "core/memory.h"
#include "core/timeline.h"
#include "cpu/accumulator.h"
#include "cpu/kernels/primitives.h"
#include "drt/drt.h"
#include "random/state.h"

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <memory>
#include <vector>

namespace drt {

class CpuTask;

/// One replica. Generated code sees its head, drt_replica. Only the replica's own
/// thread touches it while an entry runs.
class Replica : public drt_replica {
public:
  Replica(CpuTask &task, int32_t localIndex, int libraryThreads);
  Replica(const Replica &) = delete;
  Replica &operator=(const Replica &) = delete;

  static Replica &of(drt_replica *replica) { return *static_cast<Replica *>(replica); }

  CpuTask &task() { return task_; }

  /// Scratch memory for library calls: at least `bytes`, 64-byte aligned, the same
  /// block at every call, its contents undefined. Grows, never shrinks.
  void *scratch(int64_t bytes) {
    if (bytes > scratch_.bytes())
      scratch_ = Memory(bytes);
    return scratch_.data();
  }

  /// Leaves the entry from anywhere in it, back to CpuTask::enqueue: generated
  /// code has no exceptions to unwind it. No destructor may be pending between.
  [[noreturn]] void escape() { std::longjmp(wayOut, 1); }

  PrimitiveCache primitives;
  RandomStates randomStates;

  // `feeds` points here: as many as the entry with the most feeds has.
  std::vector<const void *> feedPointers;

  // What has become of each bucket of the entry that runs; the same in every
  // replica of the task, since all run the same program.
  enum class BucketState : uint8_t { Contributions, Reduced };
  std::vector<BucketState> bucketStates;

  std::vector<Accumulator> accumulators; // the program's

  std::unique_ptr<TimelineRow> timeline; // null unless --timeline
  std::unique_ptr<Delays> delays;        // null unless a test asks for them

  /// Lets the others go ahead, in a test.
  void delay() {
    if (delays)
      delays->pause();
  }

  const drt_entry *entry = nullptr;      // that runs
  int64_t version = 0;                   // of the variables that it pulled: updates that they have seen

  // For stall warnings, which another thread writes: the scope that was begun
  // last, and what the replica waits for.
  std::atomic<int32_t> scope{-1};
  std::atomic<const char *> waitsFor{nullptr};

  // One block of a gradient while it is reduced: small enough to stay in the first-level cache.
  static constexpr int64_t blockBytes = 16 << 10;
  Memory block;
  std::jmp_buf wayOut;

private:
  CpuTask &task_;
  Memory scratch_;
};

} // namespace drt

#endif // DRT_CPU_REPLICA_H

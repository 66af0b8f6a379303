//===- replica.h - What the runtime keeps for one replica -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_REPLICA_H
#define DRT_CPU_REPLICA_H

#include "core/delays.h"
#include "core/memory.h"
#include "core/replica_use.h"
#include "core/timeline.h"
#include "cpu/accumulator.h"
#include "cpu/kernels/primitives.h"
#include "cpu/row_exchange.h"
#include "cpu/team.h"
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
  /// `cores`: threads that compute each part of its step together. `libraryThreads`: what a call of a library may use
  /// beside that.
  Replica(CpuTask &task, int32_t localIndex, int cores, int libraryThreads);
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

  // One block of a gradient while it is reduced: small enough to stay in the first-level cache.
  static constexpr int64_t blockBytes = 16 << 10;

  /// What each of the replica's cores has for itself.
  struct Core {
    Core(int32_t sites, int libraryThreads) : primitives(sites, libraryThreads), block(blockBytes) {}
    PrimitiveCache primitives;
    Memory block;   // of a gradient while it is reduced
    Memory partial; // of a sum that the cores make together
  };
  std::vector<Core> cores; // the first is that of the replica's own thread

  /// work(core, of how many), on each of the replica's cores at once. Exceptions reach the caller; `work` does not
  /// escape().
  template <class Work> void onEachCore(const Work &work) {
    if (!team_)
      return work(0, 1);
    team_->run([&](int core) { work(core, team_->size()); });
  }

  /// work(core, part) with the parts of [0, count), each of `grain` elements at least, on as many cores. A test that
  /// asks for delays has parts of any size.
  template <class Work> void divide(int64_t count, int64_t grain, const Work &work) {
    if (delays && grain < count)
      grain = 1;
    if (!team_ || count < 2 * std::max<int64_t>(1, grain))
      return work(cores.front(), Range{0, count});
    team_->run([&](int core) {
      if (const Range part = Team::part(count, grain, team_->size(), core); !part.empty())
        work(cores[static_cast<size_t>(core)], part);
    });
  }

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
  std::unique_ptr<ReplicaUse> use;       // null unless --report, and where servers serve it

  /// Lets the others go ahead, in a test.
  void delay() {
    if (delays)
      delays->pause();
  }

  RowRequest pulled; // what the replica asks for in drt_pull_rows
  RowPush pushed;    // and what it gives in drt_push_rows

  const drt_entry *entry = nullptr; // that runs
  int64_t version = 0;              // of the variables that it pulled: updates that they have seen

  // For stall warnings, which another thread writes: the scope that was begun
  // last, and what the replica waits for.
  std::atomic<int32_t> scope{-1};
  std::atomic<const char *> waitsFor{nullptr};

  std::jmp_buf wayOut;

private:
  CpuTask &task_;
  Memory scratch_;
  std::unique_ptr<Team> team_; // null: the replica's thread alone
};

} // namespace drt

#endif // DRT_CPU_REPLICA_H

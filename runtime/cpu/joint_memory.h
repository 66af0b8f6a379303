//===- joint_memory.h - What the replicas of a joint plan have in common --===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// In a joint plan (drt_the_joint_program) the tasks of a host, of one replica each, do what
// replicas of one task do: each reads the others' gradients and operands where they lie and
// updates its part of variables that they have in common. So all that replicas of a task
// share lies in the tasks' common memory, at other addresses in every process.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_JOINT_MEMORY_H
#define DRT_CPU_JOINT_MEMORY_H

#include "collectives/communicator.h"
#include "core/counter.h"
#include "drt/drt.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace drt {

class JointMemory {
public:
  /// Every task makes one at the same time. Throws Error.
  JointMemory(const drt_program &program, Communicator &communicator, int64_t variableBytes, int64_t arenaStride);

  char *variables() const { return variables_; }
  /// Replica i's is `arenaStride` bytes behind the one before.
  char *arenas() const { return arenas_; }
  /// All replicas' shares of a batched feed, one behind the other.
  char *feed(int32_t feed) const { return feeds_[static_cast<size_t>(feed)]; }

  Barrier &barrier() const { return header_->barrier; }
  /// How often replicas have started a bucket, over all runs.
  Counter &started(int32_t entry, int32_t bucket) const {
    return buckets_[static_cast<size_t>(firstBucket_[static_cast<size_t>(entry)] + bucket)];
  }
  /// Waits for the others that a replica has begun. All begin the same ones, so who has begun fewer is late.
  std::atomic<uint32_t> &waits(int32_t replica) const { return waits_[replica]; }
  /// Set where a task has failed, or was lost: nobody need be waited for.
  const std::atomic<bool> &aborted() const { return *memory_.aborted; }

private:
  struct Header {
    explicit Header(uint32_t replicas) : barrier(replicas, Counter::Between::Processes) {}
    Barrier barrier;
  };
  CommonMemory memory_;
  Header *header_ = nullptr;
  Counter *buckets_ = nullptr; // of all entries
  std::atomic<uint32_t> *waits_ = nullptr;
  char *variables_ = nullptr, *arenas_ = nullptr;
  std::vector<char *> feeds_;
  std::vector<int32_t> firstBucket_; // by entry
};

} // namespace drt

#endif // DRT_CPU_JOINT_MEMORY_H

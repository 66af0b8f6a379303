//===- replica.cpp - What the runtime keeps for one replica ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/replica.h"
#include "cpu/division.h"
#include "cpu/task.h"

#include <algorithm>

namespace drt {
Replica::Replica(CpuTask &task, int32_t localIndex, int cores, int libraryThreads)
    : drt_replica{}, randomStates(task.program().num_rng_states, task.config().entropy),
      accumulators(task.program().num_accumulators), task_(task) {
  const drt_program &program = task.program();
  size_t mostFeeds = 0, mostBuckets = 0;
  for (int32_t i = 0; i < program.num_entries; ++i) {
    mostFeeds = std::max<size_t>(mostFeeds, program.entries[i].num_feeds);
    mostBuckets = std::max<size_t>(mostBuckets, program.entries[i].num_buckets);
  }
  feedPointers.resize(mostFeeds);
  bucketStates.resize(mostBuckets);
  feeds = feedPointers.data();
  local_index = localIndex;
  local_replicas = task.config().localReplicas;
  global_index = task.config().firstReplica + localIndex;
  num_replicas = task.config().numReplicas;
  delays = Delays::fromEnvironment(static_cast<uint64_t>(global_index));
  for (int core = 0; core < cores; ++core)
    this->cores.emplace_back(program.num_primitives, libraryThreads);
  if (cores > 1)
    team_ = std::make_unique<Team>(cores, task.spins(), [this, localIndex](int core) {
      task_.bindCore(localIndex, core);
      setDividingReplica(this);
    });
  if (task.config().timeline)
    timeline = std::make_unique<TimelineRow>("replica " + std::to_string(global_index), global_index);
}

RandomStates &randomStatesOf(drt_replica &replica) { return Replica::of(&replica).randomStates; }

} // namespace drt

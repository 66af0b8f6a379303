//===- layout.h - Which task runs which replicas --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_LAYOUT_H
#define DRT_CORE_LAYOUT_H

#include "core/ranges.h"

#include <cstdint>
#include <vector>

namespace drt {

/// The replicas of every task, in the order of the communicator's ranks.
struct Layout {
  struct Task {
    int32_t firstReplica, replicas;
  };
  std::vector<Task> tasks;
  int32_t rank = 0; // of this task
  int32_t numReplicas = 1;

  const Task &own() const { return tasks[rank]; }
  int32_t numTasks() const { return static_cast<int32_t>(tasks.size()); }

  /// Replicas of the task that has most: collectives send as much from each.
  int32_t mostReplicas() const {
    int32_t most = 0;
    for (const Task &task : tasks)
      most = std::max(most, task.replicas);
    return most;
  }

  /// A replica's share of `count` elements: flat, equal, the last ones cut off.
  int64_t share(int64_t count) const { return (count + numReplicas - 1) / numReplicas; }

  /// The elements of the shares of a task's replicas.
  Range shareOf(const Task &task, int64_t count) const {
    const int64_t each = share(count);
    return {std::min(task.firstReplica * each, count), std::min((task.firstReplica + task.replicas) * each, count)};
  }
};

} // namespace drt

#endif // DRT_CORE_LAYOUT_H

//===- shared_memory_communicator.h - Collectives between tasks of one host -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The tasks of a host have one file in memory (memfd) in common. It has no name, so
// that it is gone with the last of them, whatever ends them.
//
//   header    who has arrived, what each task brings
//   stages    two a task: pieces of private memory on their way
//   blocks    what shared_memory() gave, the parts of all tasks side by side
//
// Tasks meet by a counter that they wait for with a futex. What lies in a block is
// reduced where it lies: each task sums a range of the elements over the
// contributions of all, in the order of tasks and replicas, and writes the sum to
// all. Anything else goes through the stages, of which there are two, so that a task
// fills one while others still read the other: whoever meets has done with the
// stage before. Sums have the same bits either way, those of one task with all
// replicas.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_SHARED_MEMORY_COMMUNICATOR_H
#define DRT_COLLECTIVES_SHARED_MEMORY_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/progress.h"

#include <functional>
#include <memory>
#include <string>

namespace drt {

struct SharedMemoryOptions {
  int rank = 0; // among the host's tasks
  int size = 1;
  int file = -1;                       // make_shared_file's, or another descriptor of it; stays the caller's
  int64_t stage_bytes = default_stage; // the same in every task; a multiple of 64
  static constexpr int64_t default_stage = 256 << 10;
  // Why another task ended the collectives, in the user's terms, given its own words. May block a while.
  std::function<std::string(const std::string &)> explain;
};

/// A descriptor of a new file for `size` tasks, closed on exec. Throws Error where the system gives none.
int make_shared_file(int size, int64_t stage_bytes = SharedMemoryOptions::default_stage);

/// `progress` outlives the communicator. Throws Error.
std::unique_ptr<Communicator> make_shared_memory_communicator(SharedMemoryOptions options, Progress &progress);

} // namespace drt

#endif // DRT_COLLECTIVES_SHARED_MEMORY_COMMUNICATOR_H

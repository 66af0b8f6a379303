//===- two_level_communicator.h - Sums within hosts, then between them -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Where several tasks of a host share memory, one of them speaks for it in sums and
// broadcasts: bytes cross the network once a host. What has another destination in
// every task goes from task to task.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_TWO_LEVEL_COMMUNICATOR_H
#define DRT_COLLECTIVES_TWO_LEVEL_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/progress.h"

#include <memory>
#include <vector>

namespace drt {

struct TwoLevelOptions {
  std::vector<std::vector<int>> hosts;         // the ranks of each; the first one speaks
  std::unique_ptr<Communicator> tasks;         // all of them
  std::unique_ptr<Communicator> host;          // the tasks of this host; null where there is one
  std::unique_ptr<Communicator> hosts_between; // the first task of each host; null in others
  // What the three count as theirs; outlives them.
  std::unique_ptr<Progress> uncounted;
};

/// `progress` outlives the communicator.
std::unique_ptr<Communicator> make_two_level_communicator(TwoLevelOptions options, Progress &progress);

} // namespace drt

#endif // DRT_COLLECTIVES_TWO_LEVEL_COMMUNICATOR_H

//===- gloo_communicator.h - Collectives over TCP by gloo -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_GLOO_COMMUNICATOR_H
#define DRT_COLLECTIVES_GLOO_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/key_value_store.h"
#include "collectives/progress.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace drt {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string group;           // before its keys in the store: one for each set of tasks that are connected
  std::string address;         // of the interface that leads to the other tasks
  double connect_timeout = 10; // seconds
  // Why a collective broke, in the user's terms, given gloo's own words: the one
  // place that knows is the control connection. May block a while, may not return.
  std::function<std::string(const std::string &gloo_error)> explain;
  // What only tasks of this run can say of a statement (launch/secret.h).
  std::function<std::string(const std::vector<std::string> &)> prove;
};

/// Connects every task to every other one. All tasks call it at the same time;
/// store and progress outlive the communicator. Throws Error.
std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions &options, KeyValueStore &store,
                                                     Progress &progress);

} // namespace drt

#endif // DRT_COLLECTIVES_GLOO_COMMUNICATOR_H

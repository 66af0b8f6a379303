//===- gloo_communicator.h - Collectives over TCP by gloo -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_GLOO_COMMUNICATOR_H
#define DRT_COLLECTIVES_GLOO_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/progress.h"

#include <functional>
#include <memory>
#include <string>

namespace drt {

/// Where the tasks leave their addresses for each other.
class KeyValueStore {
public:
  virtual ~KeyValueStore();
  virtual void set(const std::string &key, const std::string &value) = 0;
  /// Blocks until the key is set; throws Error where that will not happen.
  virtual std::string get(const std::string &key) = 0;
};

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string address;         // of the interface that leads to the other tasks
  double connect_timeout = 10; // seconds
  // Why a collective broke, in the user's terms, given gloo's own words: the one
  // place that knows is the control connection. May block a while, may not return.
  std::function<std::string(const std::string &gloo_error)> explain;
};

/// Connects every task to every other one. All tasks call it at the same time;
/// store and progress outlive the communicator. Throws Error.
std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions &options, KeyValueStore &store,
                                                     Progress &progress);

} // namespace drt

#endif // DRT_COLLECTIVES_GLOO_COMMUNICATOR_H

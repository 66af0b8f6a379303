//===- parameter_server.h - Who holds variables and updates them ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Point to point, beside Communicator, in which all take part: a replica asks a server for variables, gives it
// gradients, and is told when it may go on. Where the two are is the implementation's business.
//
// Semantics are those of TensorFlow's SyncReplicasOptimizer and its accumulators (Chen et al., Revisiting Distributed
// Synchronous SGD, 2016), of the stale synchronous parallel model (Ho et al., NIPS 2013), and of asynchronous SGD; see
// drt_servers in drt.h for what differs.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_SERVERS_PARAMETER_SERVER_H
#define DRT_SERVERS_PARAMETER_SERVER_H

#include <cstdint>
#include <optional>
#include <vector>

namespace drt {

/// What has become of the gradients that replicas pushed.
struct GradientCounts {
  int64_t accepted = 0; // they are in an update, or wait for one
  int64_t dropped = 0;  // stale: computed from variables that more updates have changed than the policy allows
};

/// How often updates waited for a replica.
struct Lateness {
  int64_t updates = 0; // that its gradient made complete, and that waited for it for a tenth of their time or more
  int64_t ns = 0;      // that all updates waited for it since the gradient before
  int64_t dropped = 0; // of its gradients
};

/// Called by many replicas at once, each in its own thread, and known by their numbers over all tasks. What returns
/// nothing or false has been stopped: the caller ends its step.
class ParameterServer {
public:
  virtual ~ParameterServer() = default;

  /// Copies every variable that replicas read to `values`, in the order of drt_servers.pulled, and behind them a row
  /// for each of `indices`, in the order of drt_servers.tables; all as the same update left them. Returns how many
  /// updates they have seen: the version.
  virtual std::optional<int64_t> pull(int32_t replica, void *const *values, void *const *indices) = 0;

  /// One gradient for each of drt_servers.gradients, computed from variables of that version. They count for one update
  /// together, or are dropped together. `report`: what the replica says of this step, as many bytes as the server was
  /// told. Both may be written again when the call returns.
  virtual bool push(int32_t replica, int64_t version, const void *const *gradients, const void *report) = 0;

  /// Ends a step: waits until the replica may begin the next one.
  virtual bool takeToken(int32_t replica) = 0;

  /// What was accepted and dropped so far, where the server is in this process.
  virtual GradientCounts counts() const { return {}; }

  // ---- For the trainer -----------------------------------------------------------

  /// One more update may run; heeded where the server is.
  virtual void allowUpdate() {}
  /// Waits for the oldest update that was not waited for here, and gives the reports of its gradients, in the order of
  /// replicas, and behind them its own where it has one. False: stopped, and there is none.
  virtual bool waitForUpdate(std::vector<std::vector<char>> &reports) = 0;

  /// Everybody who waits, or comes later, is sent away. Any thread, also from within an update.
  virtual void stop() {}
};

} // namespace drt

#endif // DRT_SERVERS_PARAMETER_SERVER_H

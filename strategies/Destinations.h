//===- Destinations.h - Who can own variables ---------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A `reduction_destination` is one of
//   "ps:0", "ps:1", ...    a server task of its own, where servers were asked for (--ps P);
//   "11.0.0.1:CPU:0"       a device of a host, as AutoDist writes it: that host's task owns the variable, and where no
//                          replica is on that host, its task is a server alone.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_DESTINATIONS_H
#define DISTC_STRATEGIES_DESTINATIONS_H

#include "strategies/Resources.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace distc::strategies {

/// The owner of a variable: a task of job "ps", or a host.
struct Destination {
  enum Kind { Server, Host } kind;
  int index; // the server's, or that of the host in Resources::hosts

  bool operator==(const Destination &) const = default;
};

/// Looks destinations up, in constant time each.
class Destinations {
public:
  explicit Destinations(const Resources &resources);

  /// Nothing where the resources do not have it.
  std::optional<Destination> find(llvm::StringRef destination) const;

private:
  int servers;
  llvm::StringMap<int> hosts; // by device
};

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_DESTINATIONS_H

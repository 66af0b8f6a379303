//===- Destinations.cpp - Who can own variables ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Destinations.h"
#include "llvm/ADT/STLExtras.h"

namespace distc::strategies {

Destinations::Destinations(const Resources &resources) : servers(resources.servers) {
  for (auto [i, host] : llvm::enumerate(resources.hosts)) {
    // As in AutoDist, whatever replicas run on.
    hosts[host.address + ":CPU:0"] = i;
    for (int number : host.cpus)
      hosts[host.address + ":CPU:" + std::to_string(number)] = i;
    for (int number : host.gpus)
      hosts[host.address + ":GPU:" + std::to_string(number)] = i;
  }
}

std::optional<Destination> Destinations::find(llvm::StringRef destination) const {
  if (auto host = hosts.find(destination); host != hosts.end())
    return Destination{Destination::Host, host->second};
  int index;
  if (destination.consume_front("ps:") && !destination.getAsInteger(10, index) && index >= 0 && index < servers)
    return Destination{Destination::Server, index};
  return std::nullopt;
}

} // namespace distc::strategies

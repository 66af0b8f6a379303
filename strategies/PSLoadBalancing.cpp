//===- PSLoadBalancing.cpp - Every variable on the server with the fewest bytes ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makePSLoadBalancing() {
  return {"PSLoadBalancing", "each variable is on the server that has the fewest bytes", getServerParameters(),
          [](BuildState &build) {
            return addAllToServers(build, makeGreedyPlacement(build.resources.getReductionDevices().size()), keepWhole);
          }};
}

} // namespace distc::strategies

//===- RoundRobinPS.cpp - Variables on one server after the other ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeRoundRobinPS() {
  return {"RoundRobinPS", "variables are on one server after the other", getServerParameters(), [](BuildState &build) {
            return addAllToServers(build, makeRoundRobinPlacement(build.resources.getReductionDevices().size()),
                                   keepWhole);
          }};
}

} // namespace distc::strategies

//===- HashPS.cpp - Variables on servers by their names -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeHashPS() {
  return {"HashPS", "each variable is on the server that the hash of its name says", getServerParameters(),
          [](BuildState &build) {
            return addAllToServers(build, makeHashPlacement(build.resources.getReductionDevices().size()), keepWhole);
          }};
}

} // namespace distc::strategies

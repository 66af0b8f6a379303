//===- PS.cpp - Every variable on the first server ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makePS() {
  return {"PS", "every variable is on the first server", getServerParameters(),
          [](BuildState &build) { return addAllToServers(build, makeSinglePlacement(), keepWhole); }};
}

} // namespace distc::strategies

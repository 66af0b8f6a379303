//===- UnevenPartitionedPS.cpp - Uneven shards of axis 0 on servers -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeUnevenPartitionedPS() {
  return {
      "UnevenPartitionedPS", "axis 0 is split by the least number that does not divide it, shards balanced by bytes",
      getServerParameters(), [](BuildState &build) {
        return addAllToServers(build, makeGreedyPlacement(build.resources.getReductionDevices().size()), splitUnevenly);
      }};
}

} // namespace distc::strategies

//===- PartitionedPS.cpp - Even shards of axis 0 on servers ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makePartitionedPS() {
  return {"PartitionedPS", "axis 0 is split by its least divisor, and each shard on the server with the fewest bytes",
          join(getServerParameters(), getDivisorParameters()), [](BuildState &build) {
            int64_t maxShards = build.arguments.getInteger("max_shards");
            return addAllToServers(build, makeGreedyPlacement(build.resources.getReductionDevices().size()),
                                   [&](const VariableFacts &variable) { return splitEvenly(variable, 0, maxShards); });
          }};
}

} // namespace distc::strategies

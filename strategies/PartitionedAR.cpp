//===- PartitionedAR.cpp - Variables are split on axis 0, and shards all-reduced ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makePartitionedAR() {
  return {"PartitionedAR", "axis 0 is split by its least divisor, and every shard all-reduced",
          join(getAllReduceParameters(), getDivisorParameters()), [](BuildState &build) {
            int64_t maxShards = build.arguments.getInteger("max_shards");
            return allReduceAll(build,
                                [&](const VariableFacts &variable) { return splitEvenly(variable, 0, maxShards); });
          }};
}

} // namespace distc::strategies

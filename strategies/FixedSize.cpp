//===- FixedSize.cpp - TensorFlow's fixed_size_partitioner ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeFixedSize() {
  return {"fixed_size", "every variable in shards parts of one axis, on servers",
          join({Parameter::integer("shards", "2", "parts of a variable", 1),
                Parameter::integer("axis", "0", "that is split")},
               getPlacedPartsParameters()),
          [](BuildState &build) {
            int64_t shards = build.arguments.getInteger("shards");
            int axis = build.arguments.getInteger("axis");
            return addAllToServers(build, makeAskedPlacement(build),
                                   [&](const VariableFacts &variable) { return splitAxis(variable, axis, shards); });
          }};
}

} // namespace distc::strategies

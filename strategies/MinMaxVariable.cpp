//===- MinMaxVariable.cpp - TensorFlow's min_max_variable_partitioner -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"
#include "llvm/Support/MathExtras.h"

namespace distc::strategies {

Builder makeMinMaxVariable() {
  return {"min_max_variable", "axis 0 in up to max_partitions parts of at least min_slice_bytes, on servers",
          join({Parameter::integer("max_partitions", "1", "parts of a variable", 1),
                Parameter::integer("min_slice_bytes", "262144", "bytes of a part, at least", 1),
                Parameter::integer("axis", "0", "that is split")},
               getPlacedPartsParameters()),
          [](BuildState &build) {
            int64_t most = build.arguments.getInteger("max_partitions");
            int64_t bytes = build.arguments.getInteger("min_slice_bytes");
            int axis = build.arguments.getInteger("axis");
            return addAllToServers(build, makeAskedPlacement(build), [&](const VariableFacts &variable) {
              return splitAxis(variable, axis, std::min<int64_t>(most, llvm::divideCeil(variable.bytes, bytes)));
            });
          }};
}

} // namespace distc::strategies

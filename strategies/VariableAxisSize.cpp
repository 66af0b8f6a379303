//===- VariableAxisSize.cpp - TensorFlow's variable_axis_size_partitioner -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"
#include "llvm/Support/MathExtras.h"

namespace distc::strategies {

static int64_t countShards(const VariableFacts &variable, int axis, int64_t maxBytes, int64_t maxShards) {
  // Where the axis is not there, splitAxis() says so of any variable that is too large.
  bool hasAxis = axis < static_cast<int>(variable.shape.size()) && variable.shape[axis] > 0;
  int64_t size = hasAxis ? variable.shape[axis] : 1;
  int64_t sliceBytes = std::max<int64_t>(variable.bytes / size, 1);
  int64_t shards = hasAxis ? llvm::divideCeil(size, std::max<int64_t>(maxBytes / sliceBytes, 1))
                           : llvm::divideCeil(variable.bytes, maxBytes);
  return maxShards ? std::min(shards, maxShards) : shards;
}

Builder makeVariableAxisSize() {
  return {"variable_axis_size", "axis 0 in parts of at most max_shard_bytes, on servers",
          join({Parameter::integer("max_shard_bytes", "67108863", "bytes of a part, at most", 1),
                Parameter::integer("max_shards", "0", "parts of a variable, which goes before bytes; 0: any"),
                Parameter::integer("axis", "0", "that is split")},
               getPlacedPartsParameters()),
          [](BuildState &build) {
            int64_t maxBytes = build.arguments.getInteger("max_shard_bytes");
            int64_t maxShards = build.arguments.getInteger("max_shards");
            int axis = build.arguments.getInteger("axis");
            return addAllToServers(build, makeAskedPlacement(build), [&](const VariableFacts &variable) {
              return splitAxis(variable, axis, countShards(variable, axis, maxBytes, maxShards));
            });
          }};
}

} // namespace distc::strategies

//===- RandomAxisPartitionAR.cpp - Variables are split on any axis, and shards all-reduced ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

/// Numbers that are the same everywhere, which the standard library's distributions are not.
static uint64_t drawNext(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15; // SplitMix64: Steele, Lea and Flood, OOPSLA 2014
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static Split splitRandomAxis(const VariableFacts &variable, uint64_t &random, int64_t maxShards) {
  // Rows cannot be cut across: the owner of a row has all of it.
  if (variable.gradient == Gradient::Sparse)
    return splitEvenly(variable, 0, maxShards);
  llvm::SmallVector<int> axes;
  for (size_t axis = 0; axis < variable.shape.size(); ++axis)
    if (variable.shape[axis] > 1)
      axes.push_back(axis);
  if (axes.empty())
    return Split::makeImpossible();
  return splitEvenly(variable, axes[drawNext(random) % axes.size()], maxShards);
}

Builder makeRandomAxisPartitionAR() {
  return {"RandomAxisPartitionAR",
          "an axis drawn for each variable is split by its least divisor, and shards all-reduced",
          join(join({Parameter::integer("seed", "0", "of the axes that are drawn")}, getAllReduceParameters()),
               getDivisorParameters()),
          [](BuildState &build) {
            uint64_t random = build.arguments.getInteger("seed");
            int64_t maxShards = build.arguments.getInteger("max_shards");
            return allReduceAll(
                build, [&](const VariableFacts &variable) { return splitRandomAxis(variable, random, maxShards); });
          }};
}

} // namespace distc::strategies

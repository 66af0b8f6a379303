//===- Splits.cpp - How builders split variables ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Splits.h"
#include <algorithm>

namespace distc::strategies {

/// The size of an axis; 0 where the variable has no such axis or its size is unknown.
static int64_t getSize(const VariableFacts &variable, int axis) {
  if (axis >= static_cast<int>(variable.shape.size()))
    return 0;
  return std::max<int64_t>(variable.shape[axis], 0);
}

Split splitAxis(const VariableFacts &variable, int axis, int64_t shards) {
  if (shards < 2)
    return Split::whole();
  int64_t size = getSize(variable, axis);
  if (size < 2 || (axis > 0 && variable.gradient == Gradient::Sparse))
    return Split::makeImpossible();
  return {axis, std::min(shards, size), false};
}

Split splitEvenly(const VariableFacts &variable, int axis, int64_t maxShards) {
  int64_t size = getSize(variable, axis);
  for (int64_t shards = 2; shards <= std::min(size, maxShards); ++shards) {
    if (size % shards == 0)
      return splitAxis(variable, axis, shards);
    // What has no divisor up to its root is prime: its only one is itself.
    if (shards * shards > size)
      shards = std::max(shards, size - 1);
  }
  return Split::makeImpossible();
}

Split splitUnevenly(const VariableFacts &variable) {
  int64_t size = getSize(variable, 0);
  for (int64_t shards = 2; shards < size; ++shards)
    if (size % shards)
      return splitAxis(variable, 0, shards);
  return Split::makeImpossible();
}

} // namespace distc::strategies

//===- Splits.h - How builders split variables --------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_SPLITS_H
#define DISTC_STRATEGIES_SPLITS_H

#include "strategies/GraphFacts.h"

namespace distc::strategies {

/// How many shards of which axis a variable is to have. One: it stays whole.
struct Split {
  int axis = 0;
  int64_t shards = 1;
  /// It stays whole though it was to be split; the user is told.
  bool impossible = false;

  static Split whole() { return {}; }
  static Split makeImpossible() { return {0, 1, true}; }
};

/// `shards` shards, at most one an entry of the axis. Impossible where the variable has no such axis, where the axis
/// has one entry, and where the gradient is of rows and the axis is another one.
Split splitAxis(const VariableFacts &variable, int axis, int64_t shards);

/// As many shards as the smallest divisor >= 2 of the axis, all of one size. Impossible above `maxShards`.
Split splitEvenly(const VariableFacts &variable, int axis, int64_t maxShards);

/// As many shards of axis 0 as the smallest number >= 2 that does not divide it.
Split splitUnevenly(const VariableFacts &variable);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_SPLITS_H

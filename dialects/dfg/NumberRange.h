//===- NumberRange.h - What numbers may be ---------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_NUMBERRANGE_H
#define DISTC_DIALECTS_DFG_NUMBERRANGE_H

#include "dialects/dfg/Dfg.h"
#include <cmath>
#include <optional>

namespace distc::dfg {

/// What each element of a value may be, both included. A truth value is 0 or 1. Integers are exact as doubles where
/// anything is decided by them: sizes.
struct NumberRange {
  double least = -HUGE_VAL, most = HUGE_VAL;

  static NumberRange of(double number) { return {number, number}; }
  static NumberRange ofTruth(std::optional<bool> holds) { return holds ? of(*holds ? 1 : 0) : NumberRange{0, 1}; }
  /// Whether it is one number, and known.
  bool isOne() const { return least == most; }
  bool contains(const NumberRange &other) const { return least <= other.least && other.most <= most; }
};

/// What is in either.
inline NumberRange hull(NumberRange x, NumberRange y) { return {std::min(x.least, y.least), std::max(x.most, y.most)}; }

/// The range of op's only result, from those of its operands. Also where one operand alone decides: the truth of
/// `x && false`.
NumberRange inferNumberRange(mlir::Operation *op, llvm::function_ref<NumberRange(mlir::Value)> rangeOf);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NUMBERRANGE_H

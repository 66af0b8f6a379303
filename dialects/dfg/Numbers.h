//===- Numbers.h - Numbers that are computed of sizes and constants -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_NUMBERS_H
#define DISTC_DIALECTS_DFG_NUMBERS_H

#include "dialects/dfg/ShapeContext.h"

namespace distc::dfg {

/// What float32 or float64 arithmetic on known sizes and constants gives for one element, as kernels round it: a part
/// of the batch (`0.7 * b`). None where something else is in it, or after `depth` nodes.
std::optional<double> evaluateNumber(mlir::Value value, const ShapeContext &context, int depth = 16);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NUMBERS_H

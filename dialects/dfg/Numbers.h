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

/// On a graph: conditions and loops that were decided by a number that may be the batch that it fixes, and of a loop
/// the tensors, with an axis each, that it takes an element of in each iteration until there are none.
inline constexpr llvm::StringLiteral kDecidedByRowsAttr = "decided_by_rows";

class GraphOp;

/// The first size of all placeholders of rank 1 and more, where none leaves it open: the batch that the graph fixes.
/// Else 0.
int64_t findFixedBatch(GraphOp graph);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NUMBERS_H

//===- HalfRange.h - Values of float16 are as large as one device's -----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_REPLICATE_HALFRANGE_H
#define DISTC_PASSES_DISTRIBUTE_REPLICATE_HALFRANGE_H

#include "passes/distribute/flow/BatchConversions.h"

namespace distc {

/// Of N replicas each divides the loss by its share's size, so that what backward computes is N times what one device
/// computes, until gradients are averaged. float16 has no room for that: with a loss scale that one device bears, N
/// replicas overflow. Values of float16 that the batch's size was divided out of (`sharded * N^-1`) are divided by N
/// where they become float16 (dist.rescale), and multiplied by N where they leave it. What is reduced is then a sum,
/// not a mean. Sets `changed` where anything was. Fails with a diagnostic where shapes do not fit.
llvm::LogicalResult keepHalvesInRange(dfg::GraphOp graph, int64_t replicas, bool &changed);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_REPLICATE_HALFRANGE_H

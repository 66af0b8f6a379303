//===- FixedLoss.h - The loss of a graph that fixes its batch ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FIXEDLOSS_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FIXEDLOSS_H

#include "passes/distribute/flow/BatchFlow.h"

namespace distc {

/// Fails with a diagnostic where `graph` fixes its batch and its loss is a sum over that: the gradients of all replicas
/// are averaged there.
llvm::LogicalResult checkFixedLoss(dfg::GraphOp graph, const BatchFlow &flow);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FIXEDLOSS_H

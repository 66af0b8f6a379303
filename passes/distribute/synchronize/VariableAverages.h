//===- VariableAverages.h - Moving averages of variables ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_VARIABLEAVERAGES_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_VARIABLEAVERAGES_H

#include "passes/distribute/strategy/SyncPolicy.h"
#include "strategies/StepNodes.h"

namespace distc {

/// Gives every variable with an entry in the strategy that a step updates a variable `NAME/ExponentialMovingAverage`,
/// which begins with its initial value and moves by 1 - decay of the way to it behind its updates. It is held and
/// computed where the variable is. The saver does not know it.
/// Fails where the graph has a variable of that name.
mlir::LogicalResult addVariableAverages(dfg::GraphOp graph, const SyncPolicies &policies,
                                        const strategies::StepNodes &step);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_VARIABLEAVERAGES_H

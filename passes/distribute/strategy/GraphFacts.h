//===- GraphFacts.h - What strategies are made from ---------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_STRATEGY_GRAPHFACTS_H
#define DISTC_PASSES_DISTRIBUTE_STRATEGY_GRAPHFACTS_H

#include "passes/distribute/flow/BatchFlow.h"
#include "strategies/GraphFacts.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace distc {

/// How the training step (`train_op` of the graph; without one, every optimizer) updates each variable. Gradients are
/// found where `dist-insert-synchronizers` reduces them, whatever the update is written with: an optimizer's operation,
/// or assignments that read slots which the step has updated before. Linear in the nodes. Variables that the step does
/// not update are left out.
llvm::StringMap<strategies::Gradient> findVariableGradients(dfg::GraphOp graph, const BatchFlow &flow);

/// The variables that the training step updates.
llvm::StringSet<> findUpdatedVariables(mlir::ModuleOp module);

/// Facts of the module's graph. Fails with a diagnostic where shapes do not fit.
llvm::FailureOr<strategies::GraphFacts> computeGraphFacts(mlir::ModuleOp module);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_STRATEGY_GRAPHFACTS_H

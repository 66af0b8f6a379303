//===- RawGradients.h - What must be reduced before updates -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_RAWGRADIENTS_H
#define DISTC_PASSES_DISTRIBUTE_RAWGRADIENTS_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/BatchFlow.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace distc {

/// A value of each replica that is reduced, and the variable that it is for.
struct RawGradient {
  dist::Reduction reduction;
  llvm::StringRef variable;
};

/// Found by walking back from the updates.
struct RawGradients {
  llvm::MapVector<mlir::Value, RawGradient> values;
  /// Nodes between them and the updates: they see reduced values from now on.
  llvm::DenseSet<mlir::Operation *> path;
  /// The updates that were walked from.
  llvm::SmallVector<mlir::Operation *> updates;
};

/// Walks back from every update of `graph`, all at once and nearest first, so that a gradient that several updates use
/// (by a global norm) belongs to the update nearest to it; updates of `variables`, those that the strategy names, go
/// before others. Fails with a diagnostic where a value of the training step cannot be reduced.
llvm::FailureOr<RawGradients> findRawGradients(dfg::GraphOp graph, const BatchFlow &flow,
                                               const strategies::StepNodes &step, const llvm::StringSet<> &variables);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_RAWGRADIENTS_H

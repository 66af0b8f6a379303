//===- RawGradients.h - What must be reduced before updates -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_RAWGRADIENTS_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_RAWGRADIENTS_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/strategy/SyncPolicy.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/MapVector.h"

namespace distc {

/// A value of each replica that is reduced, and the variable that it is for.
struct RawGradient {
  dist::Reduction reduction;
  llvm::StringRef variable;
  /// Of a sparse gradient, whose rows the value is: the number of each row.
  mlir::Value indices;
  /// Where gradients are accumulated, how those of several batches become one. Of values that see other replicas'
  /// examples it does not follow from how the replicas' parts of one batch do: divided by the whole batch's size they
  /// are added up, and yet are parts of a mean.
  dist::Reduction batches = dist::Reduction::Mean;
};

/// Found by walking back from the updates.
struct RawGradients {
  llvm::MapVector<mlir::Value, RawGradient> values;
  /// Indices of sparse gradients, each with the values of the first gradient that has them.
  llvm::DenseMap<mlir::Value, mlir::Value> indices;
  /// Nodes between them and the updates: they see reduced values from now on.
  llvm::DenseSet<mlir::Operation *> path;
  /// The updates that were walked from.
  llvm::SmallVector<mlir::Operation *> updates;

  /// Whose rows an operand of a node names, where several gradients have the same indices.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, mlir::Value> indexUses;

  bool contains(mlir::Value value) const { return values.contains(value) || indices.contains(value); }
  /// The gradient (a key of `values`) that `operand` of `op` is, or that it is the indices of; null for none.
  mlir::Value find(mlir::Operation *op, mlir::Value operand) const {
    if (values.contains(operand))
      return operand;
    mlir::Value rows = indexUses.lookup({op, operand});
    return rows ? rows : indices.lookup(operand);
  }
};

/// The variable that `op` updates, by its first written operand; "" where the handle does not say.
llvm::StringRef getUpdatedVariable(mlir::Operation *op);
/// The loss and the fetches of `graph`, "NODE:OUTPUT".
std::vector<std::string> getFetchedTensors(dfg::GraphOp graph);

/// Where gradients are accumulated: the updates that happen at each batch (`dist.each_batch`), or the others.
enum class UpdatesOf { EachBatch, AllBatches };

/// Walks back from every update of `graph` that `which` names, all at once and nearest first, so that a gradient that
/// several updates use (by a global norm) belongs to the update nearest to it; updates of variables that the strategy
/// names go before others. What an update without synchronization (async) on a server of TensorFlow's needs of a
/// replica is taken as it is: each replica's is one of its own. A task of an executable is given gradients, and makes
/// the rest. Fails with a diagnostic where a value of the training step cannot be reduced.
llvm::FailureOr<RawGradients> findRawGradients(dfg::GraphOp graph, const BatchFlow &flow,
                                               const strategies::StepNodes &step, const SyncPolicies &policies,
                                               UpdatesOf which);

/// Whether a fetch that is a function of sums over the batch (the root of a mean) is computed of reduced ones, like
/// what leads to an update; and the values of `graph` that are.
bool computesFetchesOfReduced(const BatchFlow &flow, const SyncPolicies &policies);
llvm::DenseSet<mlir::Value> findFunctionsOfSums(dfg::GraphOp graph, const BatchFlow &flow);

/// Whether a value is a sum of means over the batch, and of what no batch has a part in: of several replicas' or
/// batches' the average is that sum of the means' averages. `depth`: of additions that are looked through.
bool isSumOfMeans(mlir::Value value, const BatchFlow &flow, int depth = 12);

/// A value that an update of the training step depends on, and that no synchronization of it makes whole.
struct Obstacle {
  mlir::Value value;
  mlir::Operation *update;
};

/// What findRawGradients would fail for, without a diagnostic.
llvm::SmallVector<Obstacle> findObstacles(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step,
                                          const SyncPolicies &policies);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_RAWGRADIENTS_H

//===- SparseGradients.h - Rows on the way to an update -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SPARSEGRADIENTS_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SPARSEGRADIENTS_H

#include "passes/distribute/synchronize/RawGradients.h"

namespace distc {

/// A sparse gradient as backward made it: both have the batch's axis as their first.
struct SparseGradient {
  mlir::Value indices, values;
  /// What lies between it and the update: the optimizer's deduplication, a scaling, the choice of a shard's rows.
  llvm::SmallVector<mlir::Operation *> path;
};

/// Whether op finds the distinct elements of its operand.
bool isUnique(mlir::Operation *op);

/// Whether every row of op's result comes from one row of an operand, or is a sum of rows, or chooses among them: such
/// nodes do the same to joined rows as to a replica's.
bool worksOnRows(mlir::Operation *op);

/// A node whose result is the gradient, whatever rows it is made of.
using EndsAt = llvm::function_ref<bool(mlir::Operation *)>;

/// Walks back from the indices and the values of `update` to the first pair of which they are made; none where there is
/// no such pair. `throughFunctions`: over what each row becomes by itself (its square) as well.
std::optional<SparseGradient> findSparseGradient(dfg::UpdateInterface update, const BatchFlow &flow,
                                                 bool throughFunctions = false, EndsAt endsAt = nullptr);

/// The sparse gradient whose rows `op` adds up by their numbers, or by the places of these among the distinct ones, as
/// they are or as each becomes by itself; none where `op` adds up no such rows.
std::optional<SparseGradient> findAddedRows(mlir::Operation *op, const BatchFlow &flow, EndsAt endsAt = nullptr);

/// Whether what `consumers` make of the sparse gradient `values` is the same where rows of one index are added before,
/// and come in any order, as in a server's accumulator: it is not where a norm is taken over the rows as backward made
/// them.
bool canAddRows(const RawGradients &gradients, mlir::Value values, const llvm::DenseSet<mlir::Operation *> &consumers);

/// Where a shard's rows are chosen right among those that backward made, the gradient becomes these.
void chooseOwnRows(SparseGradient &gradient);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SPARSEGRADIENTS_H

//===- BucketOrder.h - Which nodes wait for which reductions -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BUCKETORDER_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BUCKETORDER_H

#include "dialects/dfg/Dfg.h"

namespace distc {

/// The wave of the reduction that a consumer's operand, which is made in `wave`, is replaced by; none where it is not
/// reduced.
using FindReduction =
    llvm::function_ref<std::optional<unsigned>(mlir::Operation *consumer, mlir::Value operand, unsigned wave)>;

/// The wave of every node of `block`: 0 where it waits for no reduction, one more than the wave of the reduced value
/// where it uses one, and never before what it depends on by data, control edges or the effects on variables.
/// `consumers` are the nodes that see reduced values.
///
/// Nodes in the order of waves, and of the block within a wave, are a valid order in which every reduction of a wave
/// stands before the next wave.
llvm::DenseMap<mlir::Operation *, unsigned> findWaves(mlir::Block &block, FindReduction findReduction,
                                                      const llvm::DenseSet<mlir::Operation *> &consumers);

/// The nodes of each wave, in block order; there is at least one wave.
llvm::SmallVector<llvm::SmallVector<mlir::Operation *>>
sortIntoWaves(mlir::Block &block, const llvm::DenseMap<mlir::Operation *, unsigned> &waves);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BUCKETORDER_H

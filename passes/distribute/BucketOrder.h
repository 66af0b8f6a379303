//===- BucketOrder.h - Which nodes wait for which reductions -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_BUCKETORDER_H
#define DISTC_PASSES_DISTRIBUTE_BUCKETORDER_H

#include "dialects/dfg/Dfg.h"

namespace distc {

/// The wave of every node of `block`: 0 where it waits for no reduction, one more than the wave of the reduced value
/// where it uses one, and never before what it depends on by data, control edges or the effects on variables. `reduced`
/// are the values that are reduced, `consumers` the nodes that see the reduced ones.
///
/// Nodes in the order of waves, and of the block within a wave, are a valid order in which every reduction of a wave
/// stands before the next wave.
llvm::DenseMap<mlir::Operation *, unsigned> findWaves(mlir::Block &block,
                                                      llvm::function_ref<bool(mlir::Value)> isReduced,
                                                      const llvm::DenseSet<mlir::Operation *> &consumers);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_BUCKETORDER_H

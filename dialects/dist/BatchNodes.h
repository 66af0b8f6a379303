//===- BatchNodes.h - What runs at every batch of an update --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DIST_BATCHNODES_H
#define DISTC_DIALECTS_DIST_BATCHNODES_H

#include "dialects/dist/Dist.h"
#include "llvm/ADT/DenseSet.h"

namespace distc::dist {

/// How often nodes of a step run where gradients are accumulated over several batches.
struct BatchNodes {
  /// What depends on the batch, by data: on more than its size, which is the same for all batches. And updates that are
  /// marked with `dist.each_batch`.
  llvm::DenseSet<mlir::Operation *> seeBatch;
  /// What depends on the batch's size, and on nothing else of it.
  llvm::DenseSet<mlir::Operation *> seeSizes;
  /// What runs once for all batches of an update: accumulated gradients, updates that see nothing of the batch (the
  /// global step, a schedule; not the keys of random numbers), and what follows from either, by data or by control
  /// edges.
  llvm::DenseSet<mlir::Operation *> runPerUpdate;
};

/// Of a graph whose placeholders are marked with `dist.feed`.
BatchNodes findBatchNodes(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isInStep);
/// Of one whose placeholders `isBatched` knows.
BatchNodes findBatchNodes(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isInStep,
                          llvm::function_ref<bool(mlir::Operation *)> isBatched);

} // namespace distc::dist

#endif // DISTC_DIALECTS_DIST_BATCHNODES_H

//===- BehindUpdates.h - What of a step runs behind its updates -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BEHINDUPDATES_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BEHINDUPDATES_H

#include "passes/distribute/synchronize/RawGradients.h"

namespace distc {

/// Nodes of the step that run behind one of its updates; those that happen at each batch (`dist.each_batch`) are none.
struct BehindUpdates {
  /// By data, by control edges, or by reading what it wrote.
  llvm::DenseSet<mlir::Operation *> all;
  /// Those whose values depend on what was written. What only waits could as well run before.
  llvm::DenseSet<mlir::Operation *> byState;
};

/// `reduced`: nodes that see reduced gradients, which there are when updates run.
BehindUpdates findBehindUpdates(dfg::GraphOp graph, const strategies::StepNodes &step,
                                const llvm::DenseSet<mlir::Operation *> &reduced = {});

/// Removes the control edges by which what `gradients` are made of, what is fetched, or an update that happens at each
/// batch, waits for updates of the step without seeing what they write; what follows gets them. Gradients that are
/// accumulated, and the loss, are needed at batches at which no update runs. (All that a tf.function gives waits for
/// all that it updates.)
void freeFromUpdates(dfg::GraphOp graph, const RawGradients &gradients, const strategies::StepNodes &step);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_BEHINDUPDATES_H

//===- ControlEdges.h - Order around nodes that go ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_TENSORFLOW_CONTROLEDGES_H
#define DISTC_PASSES_DISTRIBUTE_TENSORFLOW_CONTROLEDGES_H

#include "dialects/dist/Dist.h"
#include "llvm/ADT/DenseSet.h"

namespace distc {

/// What waits by a control edge for a node of `gone`, which another task runs, waits for what of the block that node
/// comes after, by operands and control edges: an increment of the step behind an update stays behind the gradients
/// that are pushed for the update.
void inheritControl(mlir::Block &block, const llvm::DenseSet<mlir::Operation *> &gone);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_TENSORFLOW_CONTROLEDGES_H

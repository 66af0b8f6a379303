//===- RaiseNodes.h - Opaque nodes to operations of dfg ---------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_RAISENODES_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_RAISENODES_H

#include "dialects/dfg/Dfg.h"

namespace distc::tf {

/// Puts the operations of dfg that the block's opaque nodes stand for in their place: what was made by TensorFlow's
/// names becomes what has semantics. Fails with a diagnostic where dfg has none.
llvm::LogicalResult raiseNodes(mlir::Block &block);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_RAISENODES_H

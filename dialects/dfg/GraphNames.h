//===- GraphNames.h - What a graph asks of its nodes' names ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_GRAPHNAMES_H
#define DISTC_DIALECTS_DFG_GRAPHNAMES_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// Whether it must have a name: all nodes but reads that references make by themselves, which nothing can refer to.
bool isNamed(mlir::Operation *node);

/// A graph's nodes have names, and one that a `control` edge or an endpoint refers to is one node's. Fails with an
/// error at the node. An endpoint that no node has is for `dfg-check-endpoints` to say, which knows near names.
llvm::LogicalResult verifyNames(GraphOp graph);

/// Has MLIR verify a graph's names where it verifies uses of symbols: they are the graph's symbols.
void attachNameVerifier(mlir::MLIRContext &context);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_GRAPHNAMES_H

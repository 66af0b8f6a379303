//===- NodeOrder.h - Nodes in an order that satisfies all edges --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_NODEORDER_H
#define DISTC_DIALECTS_DFG_NODEORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace distc::dfg {

/// Edges of `n` nodes: node i follows `predecessors[begin[i]] ... predecessors[begin[i + 1] - 1]`; negative ones do not
/// count.
struct Predecessors {
  llvm::SmallVector<int> begin, predecessors;
};

/// A topological order. Among nodes that may come next, those that do not write come first (a variable's old value is
/// read before it is updated, unless an edge says otherwise), then the order of the file. Shorter than the number of
/// nodes where the rest waits for a cycle.
llvm::SmallVector<int> sortNodes(const Predecessors &edges, const llvm::BitVector &writes);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NODEORDER_H

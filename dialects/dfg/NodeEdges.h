//===- NodeEdges.h - What runs before and behind a node ---------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_NODEEDGES_H
#define DISTC_DIALECTS_DFG_NODEEDGES_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace distc::dfg {

/// The edges of a block's nodes, by data and by control.
class NodeEdges {
public:
  NodeEdges() = default;
  explicit NodeEdges(mlir::Block &block);

  /// A node that was made, or will be no more.
  void add(mlir::Operation *op) { byName[getNodeName(op)] = op; }
  void remove(mlir::Operation *op) { byName.erase(getNodeName(op)); }

  /// The node of that name, or null.
  mlir::Operation *find(llvm::StringRef name) const { return byName.lookup(name); }
  /// The nodes that `op` waits for, operands' first; those that several edges name, several times.
  llvm::SmallVector<mlir::Operation *> getBefore(mlir::Operation *op) const;

private:
  llvm::StringMap<mlir::Operation *> byName;
};

/// The nodes for which `isRoot` holds, and all that wait for one of them. The block is in order.
llvm::DenseSet<mlir::Operation *> findBehind(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isRoot);

/// Erases nodes whose values only each other use; who waits for one of them does not any longer.
void eraseNodes(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> nodes);

/// Names of the nodes that the graph's attributes name, themselves or by their tensors: endpoints, fetches, the
/// saver's.
llvm::StringSet<> getEndpointNames(GraphOp graph);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NODEEDGES_H

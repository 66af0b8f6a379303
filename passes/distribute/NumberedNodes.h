//===- NumberedNodes.h - A graph's nodes as numbers -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_NUMBEREDNODES_H
#define DISTC_PASSES_DISTRIBUTE_NUMBEREDNODES_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/BitVector.h"

namespace distc {

/// The nodes of a graph by their numbers in block order, with what each needs. For what walks a large graph several
/// times: a set of nodes is a bit each, and a walk reads arrays instead of looking up operations and names that lie
/// anywhere in memory. The graph may change meanwhile: numbers stay, and nothing looks into a node that is gone.
class NumberedNodes {
public:
  explicit NumberedNodes(dfg::GraphOp graph);

  /// The number of a control input that no node of the graph is named by.
  static constexpr unsigned kNone = ~0u;

  unsigned size() const { return nodes.size(); }
  mlir::Operation *operator[](unsigned number) const { return nodes[number]; }
  /// The nodes that make the operands, one an operand.
  llvm::ArrayRef<unsigned> getOperands(unsigned number) const {
    return llvm::ArrayRef(needs).slice(begin[number], control[number] - begin[number]);
  }
  /// One an entry of `control`.
  llvm::ArrayRef<unsigned> getControl(unsigned number) const {
    return llvm::ArrayRef(needs).slice(control[number], begin[number + 1] - control[number]);
  }
  /// The node of an endpoint, which may be a tensor's name; kNone where there is none.
  unsigned find(mlir::Attribute endpoint) const;
  /// The nodes that the graph's attributes name to be run, fetched and fed: train op, init op, loss, fetches, feeds.
  /// Those of the saver are not among them.
  llvm::SmallVector<unsigned> findEndpoints(dfg::GraphOp graph) const;

  /// Adds to `set` what its members `pending` need by operands and control edges, of the nodes in `within`.
  void close(llvm::BitVector &set, llvm::SmallVectorImpl<unsigned> &pending, const llvm::BitVector &within) const;

  /// The nodes that endpoints need, and endpoints.
  llvm::BitVector findNeeded(dfg::GraphOp graph) const;

  /// Has `op`, the node or a copy of it, wait for those of the node's control inputs that stay.
  void keepControl(mlir::Operation *op, unsigned number, llvm::function_ref<bool(unsigned)> stays) const;

  /// Erases all other nodes but those in `elsewhere`, which are in another graph by now.
  void keepOnly(const llvm::BitVector &kept, const llvm::BitVector &elsewhere = {}) const;

private:
  llvm::SmallVector<mlir::Operation *> nodes;
  llvm::SmallVector<unsigned> needs, begin, control;
  llvm::DenseMap<mlir::StringAttr, unsigned> names;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_NUMBEREDNODES_H

//===- StepNodes.h - The nodes that a training step runs ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_STEPNODES_H
#define DISTC_STRATEGIES_STEPNODES_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/DenseSet.h"

namespace distc::strategies {

/// What an endpoint of the graph needs by operands and control edges.
class StepNodes {
public:
  StepNodes() = default;
  /// Of the train op; and updates that the loss and the fetches, which a step gives, wait for beside it (those of a
  /// function, of which the train op is one result and the loss another), with what they need.
  explicit StepNodes(dfg::GraphOp graph);
  /// Of another endpoint, or of all of a list (the fetches); null where the graph has none.
  StepNodes(dfg::GraphOp graph, mlir::Attribute endpoint);

  /// Whether the graph has the endpoint.
  bool isKnown() const { return known; }
  bool contains(mlir::Operation *op) const { return nodes.contains(op); }

private:
  llvm::DenseSet<mlir::Operation *> nodes;
  bool known = false;
};

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STEPNODES_H

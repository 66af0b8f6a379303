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

/// What an endpoint of the graph, `train_op` where nothing else is said, or all of a list (`fetches`), needs by
/// operands and control edges.
class StepNodes {
public:
  StepNodes() = default;
  explicit StepNodes(dfg::GraphOp graph, llvm::StringRef endpoint = "train_op");

  /// Whether the graph has the endpoint.
  bool isKnown() const { return known; }
  bool contains(mlir::Operation *op) const { return nodes.contains(op); }

private:
  llvm::DenseSet<mlir::Operation *> nodes;
  bool known = false;
};

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STEPNODES_H

//===- StepNodes.cpp - The nodes that a training step runs -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc::strategies {

StepNodes::StepNodes(dfg::GraphOp graph, llvm::StringRef endpoint) {
  auto root = graph->getAttrOfType<StringAttr>(endpoint);
  if (!root)
    return;
  llvm::DenseMap<llvm::StringRef, Operation *> byName;
  for (Operation &op : *graph.getBody().begin())
    byName[dfg::getNodeName(&op)] = &op;
  SmallVector<Operation *> pending;
  auto need = [&](Operation *op) {
    if (op && nodes.insert(op).second)
      pending.push_back(op);
  };
  // A tensor's name ("train:0") stands for its node as well.
  need(byName.lookup(root.getValue().split(':').first));
  known = !pending.empty();
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    for (Value operand : op->getOperands())
      need(operand.getDefiningOp());
    for (llvm::StringRef name : dfg::getControlInputs(op))
      need(byName.lookup(name));
  }
}

} // namespace distc::strategies

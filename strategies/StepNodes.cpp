//===- StepNodes.cpp - The nodes that a training step runs -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc::strategies {

llvm::DenseSet<Operation *> collectNeeded(Block &block, ArrayRef<Operation *> roots) {
  llvm::DenseMap<llvm::StringRef, Operation *> byName;
  for (Operation &op : block)
    byName[dfg::getNodeName(&op)] = &op;
  llvm::DenseSet<Operation *> needed(roots.begin(), roots.end());
  SmallVector<Operation *> pending(roots);
  auto need = [&](Operation *op) {
    if (op && needed.insert(op).second)
      pending.push_back(op);
  };
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    for (Value operand : op->getOperands())
      need(operand.getDefiningOp());
    for (llvm::StringRef name : dfg::getControlInputs(op))
      need(byName.lookup(name));
  }
  return needed;
}

StepNodes::StepNodes(dfg::GraphOp graph, llvm::StringRef endpoint) {
  auto root = graph->getAttrOfType<StringAttr>(endpoint);
  if (!root)
    return;
  // A tensor's name ("train:0") stands for its node as well.
  llvm::StringRef name = root.getValue().split(':').first;
  Block &block = graph.getBody().front();
  auto node = llvm::find_if(block, [&](Operation &op) { return dfg::getNodeName(&op) == name; });
  known = node != block.end();
  if (known)
    nodes = collectNeeded(block, &*node);
}

} // namespace distc::strategies

//===- StepNodes.cpp - The nodes that a training step runs -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StepNodes.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc::strategies {

StepNodes::StepNodes(dfg::GraphOp graph, Attribute endpoint) {
  SmallVector<StringAttr> roots;
  if (auto list = llvm::dyn_cast_or_null<ArrayAttr>(endpoint)) {
    for (Attribute each : list)
      if (StringAttr root = dfg::getEndpointNode(each))
        roots.push_back(root);
  } else if (StringAttr root = dfg::getEndpointNode(endpoint)) {
    roots.push_back(root);
  }
  if (roots.empty())
    return;
  // Few nodes are named: a small table.
  Block &block = graph.getBody().front();
  llvm::DenseMap<Attribute, Operation *> named;
  for (StringAttr root : roots)
    named[root] = nullptr;
  for (Operation &op : block)
    for (Attribute name : dfg::getControl(&op))
      named[name] = nullptr;
  for (Operation &op : block)
    if (auto it = named.find(dfg::getNodeNameAttr(&op)); it != named.end())
      it->second = &op;
  SmallVector<Operation *> pending;
  auto need = [&](Operation *op) {
    if (op && nodes.insert(op).second)
      pending.push_back(op);
  };
  for (StringAttr root : roots)
    need(named.lookup(root));
  known = !pending.empty();
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    for (Value operand : op->getOperands())
      need(operand.getDefiningOp());
    for (Attribute name : dfg::getControl(op))
      need(named.lookup(name));
  }
}

} // namespace distc::strategies

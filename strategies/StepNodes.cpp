//===- StepNodes.cpp - The nodes that a training step runs -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StepNodes.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc::strategies {

namespace {
/// Walks from endpoints over operands and control edges.
class Walk {
public:
  Walk(dfg::GraphOp graph, ArrayRef<StringAttr> endpoints) {
    // Few nodes are named: a small table.
    Block &block = graph.getBody().front();
    for (StringAttr endpoint : endpoints)
      named[endpoint] = nullptr;
    for (Operation &op : block)
      for (Attribute name : dfg::getControl(&op))
        named[name] = nullptr;
    for (Operation &op : block)
      if (auto it = named.find(dfg::getNodeNameAttr(&op)); it != named.end())
        it->second = &op;
  }

  Operation *find(StringAttr name) const { return named.lookup(name); }

  /// Adds `root` and what it needs to `nodes`; `found` is told of each that is new.
  void add(Operation *root, llvm::DenseSet<Operation *> &nodes, llvm::function_ref<void(Operation *)> found = nullptr) {
    SmallVector<Operation *> pending;
    auto need = [&](Operation *op) {
      if (!op || !nodes.insert(op).second)
        return;
      pending.push_back(op);
      if (found)
        found(op);
    };
    need(root);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      for (Value operand : op->getOperands())
        need(operand.getDefiningOp());
      for (Attribute name : dfg::getControl(op))
        need(named.lookup(name));
    }
  }

private:
  llvm::DenseMap<Attribute, Operation *> named;
};

void addEndpoints(Attribute endpoint, SmallVectorImpl<StringAttr> &endpoints) {
  if (auto list = llvm::dyn_cast_or_null<ArrayAttr>(endpoint)) {
    for (Attribute each : list)
      if (StringAttr name = dfg::getEndpointNode(each))
        endpoints.push_back(name);
  } else if (StringAttr name = dfg::getEndpointNode(endpoint)) {
    endpoints.push_back(name);
  }
}
} // namespace

StepNodes::StepNodes(dfg::GraphOp graph) {
  StringAttr train = dfg::getEndpointNode(graph.getTrainOpAttr());
  if (!train)
    return;
  SmallVector<StringAttr> shown;
  addEndpoints(graph.getLossAttr(), shown);
  addEndpoints(graph.getFetchesAttr(), shown);
  SmallVector<StringAttr> endpoints(shown);
  endpoints.push_back(train);
  Walk walk(graph, endpoints);
  walk.add(walk.find(train), nodes);
  known = !nodes.empty();
  if (!known)
    return;
  llvm::DenseSet<Operation *> seen(nodes);
  SmallVector<Operation *> updates;
  for (StringAttr name : shown)
    walk.add(walk.find(name), seen, [&](Operation *op) {
      if (llvm::isa<dfg::UpdateInterface>(op))
        updates.push_back(op);
    });
  for (Operation *update : updates)
    walk.add(update, nodes);
}

StepNodes::StepNodes(dfg::GraphOp graph, Attribute endpoint) {
  SmallVector<StringAttr> endpoints;
  addEndpoints(endpoint, endpoints);
  if (endpoints.empty())
    return;
  Walk walk(graph, endpoints);
  for (StringAttr name : endpoints)
    walk.add(walk.find(name), nodes);
  known = !nodes.empty();
}

} // namespace distc::strategies

//===- UpdatePlacement.cpp - Where gradients become updates -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/servers/UpdatePlacement.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc {

/// What the loss is computed from, the loss included.
static llvm::DenseSet<Operation *> findLossNodes(dfg::GraphOp graph) {
  llvm::DenseSet<Operation *> nodes;
  StringAttr loss = graph.getLossAttr();
  if (!loss)
    return nodes;
  SmallVector<Operation *> work;
  for (Operation &op : graph.getBody().front())
    if (dfg::getNodeNameAttr(&op) == dfg::getEndpointNode(loss))
      work.push_back(&op);
  while (!work.empty())
    if (Operation *op = work.pop_back_val(); nodes.insert(op).second)
      for (Value operand : op->getOperands())
        work.push_back(operand.getDefiningOp());
  return nodes;
}

UpdatePlacement::UpdatePlacement(dfg::GraphOp graph, const RawGradients &gradients, const SyncPolicies &policies,
                                 const llvm::DenseSet<Operation *> &consumers)
    : chief(dist::PlaceAttr::get(graph.getContext(), "worker", 0)) {
  // In block order, so that numbers do not depend on addresses.
  for (Operation &op : graph.getBody().front()) {
    if (!consumers.contains(&op))
      continue;
    getNumber(&op);
    for (Value operand : op.getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (Value gradient = gradients.find(&op, operand))
        join(&op, gradient.getAsOpaquePointer());
      else if (consumers.contains(def) && !llvm::isa<dfg::UpdateInterface>(def))
        join(&op, def);
    }
  }
  // What the updates of each set say together; none where a worker's is among them.
  llvm::DenseSet<unsigned> seen;
  for (Operation *update : gradients.updates) {
    unsigned root = findRoot(getNumber(update));
    dist::PlaceAttr place = policies.get(getUpdatedVariable(update)).place;
    if (seen.insert(root).second)
      places[root] = place;
    else if (!place || !places[root])
      places[root] = {};
    else if (places[root] != place)
      places[root] = chief;
  }
  for (Operation *op : findLossNodes(graph))
    if (consumers.contains(op))
      places[findRoot(getNumber(op))] = {};
}

unsigned UpdatePlacement::getNumber(const void *member) {
  auto [it, isNew] = numbers.insert({member, parents.size()});
  if (isNew)
    parents.push_back(it->second);
  return it->second;
}

unsigned UpdatePlacement::findRoot(unsigned number) const {
  while (parents[number] != number)
    number = parents[number] = parents[parents[number]];
  return number;
}

void UpdatePlacement::join(const void *x, const void *y) {
  unsigned rootX = findRoot(getNumber(x)), rootY = findRoot(getNumber(y));
  parents[std::max(rootX, rootY)] = std::min(rootX, rootY);
}

dist::PlaceAttr UpdatePlacement::lookup(const void *member) const {
  auto it = numbers.find(member);
  return it == numbers.end() ? dist::PlaceAttr() : places.lookup(findRoot(it->second));
}

} // namespace distc

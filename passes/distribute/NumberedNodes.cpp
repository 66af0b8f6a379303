//===- NumberedNodes.cpp - A graph's nodes as numbers ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/NumberedNodes.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc {

NumberedNodes::NumberedNodes(dfg::GraphOp graph) {
  size_t numNeeds = 0;
  for (Operation &op : graph.getBody().front()) {
    nodes.push_back(&op);
    numNeeds += op.getNumOperands() + dfg::getControl(&op).size();
  }
  needs.reserve(numNeeds);
  begin.reserve(size() + 1);
  control.reserve(size());
  names.reserve(size());
  llvm::DenseMap<Operation *, unsigned> numbers;
  numbers.reserve(size());
  for (auto [number, op] : llvm::enumerate(nodes)) {
    numbers[op] = number;
    if (StringAttr name = dfg::getNodeNameAttr(op))
      names[name] = number;
  }
  for (Operation *op : nodes) {
    begin.push_back(needs.size());
    for (Value operand : op->getOperands())
      needs.push_back(numbers.find(operand.getDefiningOp())->second);
    control.push_back(needs.size());
    for (Attribute name : dfg::getControl(op)) {
      auto node = names.find(llvm::cast<StringAttr>(name));
      needs.push_back(node == names.end() ? kNone : node->second);
    }
  }
  begin.push_back(needs.size());
}

unsigned NumberedNodes::find(Attribute endpoint) const {
  StringAttr name = dfg::getEndpointNode(endpoint);
  auto node = name ? names.find(name) : names.end();
  return node == names.end() ? kNone : node->second;
}

SmallVector<unsigned> NumberedNodes::findEndpoints(dfg::GraphOp graph) const {
  SmallVector<unsigned> found;
  auto add = [&](Attribute endpoint) {
    if (unsigned number = find(endpoint); number != kNone)
      found.push_back(number);
  };
  for (Attribute name : {graph.getTrainOpAttr(), graph.getInitOpAttr(), graph.getLossAttr()})
    add(name);
  for (ArrayAttr list : {graph.getFetchesAttr(), graph.getFeedsAttr()})
    if (list)
      llvm::for_each(list, add);
  return found;
}

void NumberedNodes::close(llvm::BitVector &set, SmallVectorImpl<unsigned> &pending,
                          const llvm::BitVector &within) const {
  while (!pending.empty()) {
    unsigned number = pending.pop_back_val();
    for (unsigned need : ArrayRef(needs).slice(begin[number], begin[number + 1] - begin[number]))
      if (need != kNone && within[need] && !set[need]) {
        set.set(need);
        pending.push_back(need);
      }
  }
}

llvm::BitVector NumberedNodes::findNeeded(dfg::GraphOp graph) const {
  llvm::BitVector needed(size());
  SmallVector<unsigned> endpoints = findEndpoints(graph);
  for (unsigned endpoint : endpoints)
    needed.set(endpoint);
  close(needed, endpoints, llvm::BitVector(size(), true));
  return needed;
}

void NumberedNodes::keepControl(Operation *op, unsigned number, llvm::function_ref<bool(unsigned)> stays) const {
  ArrayRef<unsigned> before = getControl(number);
  if (llvm::all_of(before, stays))
    return;
  SmallVector<Attribute> kept;
  for (auto [name, node] : llvm::zip(dfg::getControl(op), before))
    if (stays(node))
      kept.push_back(name);
  if (kept.empty())
    op->removeAttr(dfg::kControlAttr);
  else
    op->setAttr(dfg::kControlAttr, ArrayAttr::get(op->getContext(), kept));
}

void NumberedNodes::keepOnly(const llvm::BitVector &kept, const llvm::BitVector &elsewhere) const {
  for (unsigned number = size(); number-- > 0;) {
    if (kept[number])
      keepControl(nodes[number], number, [&](unsigned before) { return before == kNone || kept[before]; });
    else if (elsewhere.empty() || !elsewhere[number])
      nodes[number]->erase();
  }
}

} // namespace distc

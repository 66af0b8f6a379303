//===- NodeEdges.cpp - What runs before and behind a node --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc::dfg {

NodeEdges::NodeEdges(Block &block) {
  for (Operation &op : block)
    add(&op);
}

SmallVector<Operation *> NodeEdges::getBefore(Operation *op) const {
  SmallVector<Operation *> before;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp())
      before.push_back(def);
  for (llvm::StringRef name : getControlInputs(op))
    if (Operation *node = find(name))
      before.push_back(node);
  return before;
}

llvm::DenseSet<Operation *> findBehind(Block &block, llvm::function_ref<bool(Operation *)> isRoot) {
  llvm::DenseSet<Operation *> behind;
  llvm::StringSet<> names;
  for (Operation &op : block) {
    bool isBehind = isRoot(&op);
    for (Value operand : op.getOperands())
      isBehind |= behind.contains(operand.getDefiningOp());
    for (llvm::StringRef control : getControlInputs(&op))
      isBehind |= names.contains(control);
    if (!isBehind)
      continue;
    behind.insert(&op);
    names.insert(getNodeName(&op));
  }
  return behind;
}

void eraseNodes(Block &block, llvm::ArrayRef<Operation *> nodes) {
  llvm::StringSet<> gone;
  for (Operation *op : nodes)
    gone.insert(getNodeName(op));
  for (Operation &op : block) {
    SmallVector<Attribute> kept(getControl(&op));
    const size_t before = kept.size();
    llvm::erase_if(kept, [&](Attribute name) { return gone.contains(llvm::cast<StringAttr>(name).getValue()); });
    if (kept.size() == before)
      continue;
    if (kept.empty())
      op.removeAttr(kControlAttr);
    else
      op.setAttr(kControlAttr, ArrayAttr::get(op.getContext(), kept));
  }
  for (Operation *op : nodes)
    op->dropAllUses();
  for (Operation *op : nodes)
    op->erase();
}

llvm::StringSet<> getEndpointNames(GraphOp graph) {
  llvm::StringSet<> names;
  for (NamedAttribute attribute : graph->getAttrs())
    attribute.getValue().walk([&](StringAttr text) { names.insert(text.getValue().split(':').first); });
  return names;
}

} // namespace distc::dfg

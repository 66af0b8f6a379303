//===- NodeEdits.cpp - Names and results of nodes that a pass adds or moves -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/NodeEdits.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc {

Value getTensor(Operation *node, llvm::StringRef tensor) {
  llvm::StringRef output = tensor.split(':').second;
  unsigned number = 0;
  if ((!output.empty() && output.getAsInteger(10, number)) || number >= node->getNumResults() ||
      dfg::isHandle(node->getResult(number).getType()))
    return {};
  return node->getResult(number);
}

Value getLoss(dfg::GraphOp graph) {
  if (auto name = graph.getLossAttr())
    for (Operation &op : graph.getBody().front())
      if (dfg::getNodeNameAttr(&op) == dfg::getEndpointNode(name))
        return getTensor(&op, name.getValue());
  return {};
}

NodeNames::NodeNames(Block &block) {
  for (Operation &op : block)
    taken.insert(dfg::getNodeName(&op));
}

std::string NodeNames::take(const llvm::Twine &wanted) {
  const std::string base = wanted.str();
  std::string name = base;
  for (unsigned count = 1; !taken.insert(name).second; ++count)
    name = base + "_" + std::to_string(count);
  return name;
}

std::string getFreeName(Block &block, const llvm::Twine &wanted) { return NodeNames(block).take(wanted); }

void leaveName(Operation *node) {
  Block &block = *node->getBlock();
  Builder builder(node->getContext());
  StringAttr left = dfg::getNodeNameAttr(node);
  StringAttr name = builder.getStringAttr(getFreeName(block, left.getValue() + "/share"));
  node->setLoc(NameLoc::get(name));
  for (Operation &op : block) {
    if (!llvm::is_contained(dfg::getControl(&op), left))
      continue;
    SmallVector<Attribute> control(dfg::getControl(&op));
    llvm::replace(control, Attribute(left), Attribute(name));
    op.setAttr(dfg::kControlAttr, builder.getArrayAttr(control));
  }
}

} // namespace distc

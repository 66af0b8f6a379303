//===- BatchNodes.cpp - What runs at every batch of an update ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/BatchNodes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

dist::BatchNodes dist::findBatchNodes(Block &block, llvm::function_ref<bool(Operation *)> isInStep) {
  BatchNodes nodes;
  llvm::StringSet<> namesPerUpdate;
  auto any = [](Operation *op, const llvm::DenseSet<Operation *> &set) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return set.contains(operand.getDefiningOp()); });
  };
  for (Operation &op : block) {
    auto share = op.getAttrOfType<StringAttr>(kFeedAttr);
    bool sees = (share && share.getValue() == kSharded) || llvm::isa<TakeOp>(op) || any(&op, nodes.seeBatch);
    if (sees)
      nodes.seeBatch.insert(&op);
    bool perUpdate = llvm::isa<AccumulateOp>(op) || any(&op, nodes.runPerUpdate) ||
                     (!sees && llvm::isa<dfg::UpdateInterface>(op) && isInStep(&op));
    for (llvm::StringRef control : dfg::getControlInputs(&op))
      perUpdate |= namesPerUpdate.contains(control);
    if (!perUpdate)
      continue;
    nodes.runPerUpdate.insert(&op);
    namesPerUpdate.insert(dfg::getNodeName(&op));
  }
  return nodes;
}

} // namespace distc

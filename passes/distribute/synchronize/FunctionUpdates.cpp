//===- FunctionUpdates.cpp - Updates in functions that a graph runs ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/FunctionUpdates.h"

using namespace mlir;

namespace distc {

UnknownUpdate getUnknownUpdate(Operation *op) {
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  if (!opaque || op->getNumOperands() == 0 || !dfg::isHandle(op->getOperand(0).getType()))
    return UnknownUpdate::None;
  llvm::StringRef kind = opaque.getOp();
  kind.consume_front("Resource");
  if (kind.starts_with("SparseApply") || kind.starts_with("Scatter"))
    return UnknownUpdate::Sparse;
  // With results and another name it is a read (ResourceGather).
  bool isUpdate = kind.starts_with("Apply") || kind.starts_with("Assign") || op->getNumResults() == 0;
  return isUpdate ? UnknownUpdate::Dense : UnknownUpdate::None;
}

Operation *FunctionUpdates::find(Operation *op) {
  if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
    return findIn(call.getCalleeAttr());
  Operation *found = nullptr;
  dfg::getSourceAttributes(op).walk([&](dfg::FuncAttr function) {
    if (!found)
      found = findIn(function.getFunction());
  });
  return found;
}

Operation *FunctionUpdates::findIn(FlatSymbolRefAttr name) {
  auto [entry, isNew] = known.try_emplace(name, nullptr);
  if (!isNew)
    return entry->second; // a function that runs itself included
  auto function = symbols.lookup<dfg::FuncOp>(name.getValue());
  if (!function || function.isExternal())
    return nullptr;
  Operation *found = nullptr;
  for (Operation &op : function.getBody().getOps()) {
    bool updates = llvm::isa<dfg::UpdateInterface>(op) || getUnknownUpdate(&op) != UnknownUpdate::None;
    if ((found = updates ? &op : find(&op)))
      break;
  }
  return known[name] = found;
}

} // namespace distc

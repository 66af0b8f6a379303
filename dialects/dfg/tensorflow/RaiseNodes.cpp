//===- RaiseNodes.cpp - Opaque nodes to operations of dfg ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/RaiseNodes.h"
#include "dialects/dfg/SourceAttributes.h"
#include "dialects/dfg/tensorflow/NodeTable.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace distc::tf {

static LogicalResult raise(dfg::OpaqueOp op, const NodeTable &table) {
  auto [known, nameIndex] = table.find(op.getOp());
  if (!known)
    return op.emitOpError() << "is of '" << op.getOp() << "', which dfg has no operation for";
  OperationState state(op.getLoc(), known->name);
  state.addOperands(op.getOperands());
  state.addTypes(op->getResultTypes());
  SmallVector<NamedAttribute> rest;
  for (NamedAttribute attribute : dfg::getSourceAttributes(op)) {
    const bool isType = llvm::any_of(known->types, [&, index = std::min(nameIndex, 1u)](const dfg::TypeRule &rule) {
      return rule.names[index] == attribute.getName().getValue();
    });
    if (StringAttr declared = isType ? StringAttr() : known->getAttributeName(attribute.getName()))
      state.addAttribute(declared, attribute.getValue());
    else if (!isType)
      rest.push_back(attribute);
  }
  OpBuilder builder(op);
  if (Attribute control = op->getAttr(dfg::kControlAttr))
    state.addAttribute(dfg::kControlAttr, control);
  Operation *node = builder.create(state);
  dfg::setSourceAttributes(node, rest);
  op->replaceAllUsesWith(node);
  op->erase();
  return success();
}

LogicalResult raiseNodes(Block &block) {
  NodeTable table(block.getParentOp()->getContext());
  for (auto node : llvm::make_early_inc_range(block.getOps<dfg::OpaqueOp>()))
    if (failed(raise(node, table)))
      return failure();
  return success();
}

} // namespace distc::tf

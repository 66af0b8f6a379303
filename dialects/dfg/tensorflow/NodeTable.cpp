//===- NodeTable.cpp - dfg's operations by their names in TensorFlow ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/NodeTable.h"
#include "dialects/dfg/tensorflow/Types.h"

using namespace mlir;

namespace distc::tf {

StringAttr KnownNode::getAttributeName(StringRef attribute) const {
  for (StringAttr declared : name.getAttributeNames())
    if (declared.getValue() == attribute)
      return declared;
  return {};
}

NodeTable::NodeTable(MLIRContext *context) {
  for (RegisteredOperationName name : context->getRegisteredOperationsByDialect("dfg")) {
    auto *interface = name.getInterface<dfg::NodeInterface>();
    if (!interface)
      continue;
    auto node = std::make_unique<KnownNode>(
        KnownNode{name, interface->getTensorFlowNames(), dfg::parseTypeRules(interface->getTypeAttributes()),
                  name.hasTrait<OpTrait::AlwaysSpeculatableImplTrait>(), name.hasInterface<dfg::UpdateInterface>()});
    for (auto [index, tensorFlowName] : llvm::enumerate(node->tensorFlowNames))
      if (!tensorFlowName.empty())
        byTensorFlowName[tensorFlowName] = {node.get(), static_cast<unsigned>(index)};
    byName[name] = node.get();
    nodes.push_back(std::move(node));
  }
}

std::optional<TypeValue> getTypeValue(const dfg::TypeRule &rule, Operation *op) {
  TypeValue value;
  auto list = [&](TypeRange types) {
    value.isList = true;
    for (Type type : types)
      value.types.push_back(getDataTypeOf(type));
    return llvm::is_contained(value.types, DT_INVALID) ? std::nullopt : std::optional(value);
  };
  auto scalar = [&](int64_t number) {
    value.scalar = number;
    return value.isCount || number != DT_INVALID ? std::optional(value) : std::nullopt;
  };
  int operands = op->getNumOperands(), results = op->getNumResults();
  switch (rule.source) {
  case dfg::TypeRule::OperandTypes:
    return list(op->getOperandTypes());
  case dfg::TypeRule::ResultTypes:
    return list(op->getResultTypes());
  case dfg::TypeRule::OperandCount:
    value.isCount = true;
    return scalar((operands + rule.index) / rule.divisor);
  case dfg::TypeRule::ResultCount:
    value.isCount = true;
    return scalar(results);
  case dfg::TypeRule::ResultType: {
    const int index = std::max(rule.index, 0);
    return index < results ? scalar(getDataTypeOf(op->getResult(index).getType())) : std::nullopt;
  }
  case dfg::TypeRule::OperandType: {
    int index = rule.index < 0 ? operands + rule.index : rule.index;
    return index >= 0 && index < operands ? scalar(getDataTypeOf(op->getOperand(index).getType())) : std::nullopt;
  }
  case dfg::TypeRule::FixedType:
    return std::nullopt;
  }
  return std::nullopt;
}

unsigned getNameIndex(Operation *op, llvm::function_ref<bool(StringRef)> isReference) {
  if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
    return isReference(handle.getVariable()) ? 0 : 1;
  if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
    return call.getStateful() ? 1 : 0;
  if (op->getNumOperands() == 0 || !dfg::isHandle(op->getOperand(0).getType()))
    return 0;
  dfg::VarHandleOp handle = dfg::getVariableHandle(op->getOperand(0));
  return handle && isReference(handle.getVariable()) ? 0 : 1;
}

} // namespace distc::tf

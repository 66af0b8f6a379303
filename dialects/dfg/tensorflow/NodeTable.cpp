//===- NodeTable.cpp - dfg's operations by their names in TensorFlow ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/NodeTable.h"
#include "dialects/dfg/tensorflow/Types.h"

using namespace mlir;

namespace distc::tf {

static TypeEntry parseEntry(StringRef text) {
  auto [name, source] = text.split(':');
  TypeEntry entry;
  auto [first, second] = name.split('|');
  entry.names[0] = first;
  entry.names[1] = second.empty() ? first : second;
  if (name.consume_front("=")) {
    entry.source = TypeEntry::FixedType;
    entry.fixed = getDataTypeByName(name);
    if (source == "r*")
      entry.index = TypeEntry::kAllResults;
    else
      source.drop_front().getAsInteger(10, entry.index);
  } else if (source == "*") {
    entry.source = TypeEntry::OperandTypes;
  } else if (source == "*r") {
    entry.source = TypeEntry::ResultTypes;
  } else if (source == "#r") {
    entry.source = TypeEntry::ResultCount;
  } else if (source.consume_front("#")) {
    entry.source = TypeEntry::OperandCount;
    if (source.consume_front("/"))
      source.getAsInteger(10, entry.divisor);
    else
      source.getAsInteger(10, entry.index);
  } else if (source.consume_front("r")) {
    entry.source = TypeEntry::ResultType;
    source.getAsInteger(10, entry.index);
  } else {
    entry.source = TypeEntry::OperandType;
    source.getAsInteger(10, entry.index);
  }
  return entry;
}

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
    auto node = std::make_unique<KnownNode>(KnownNode{name,
                                                      interface->getTensorFlowNames(),
                                                      {},
                                                      name.hasTrait<OpTrait::AlwaysSpeculatableImplTrait>(),
                                                      name.hasInterface<dfg::UpdateInterface>()});
    SmallVector<StringRef> entries;
    interface->getTypeAttributes().split(entries, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries)
      node->types.push_back(parseEntry(entry));
    for (auto [index, tensorFlowName] : llvm::enumerate(node->tensorFlowNames))
      if (!tensorFlowName.empty())
        byTensorFlowName[tensorFlowName] = {node.get(), static_cast<unsigned>(index)};
    byName[name] = node.get();
    nodes.push_back(std::move(node));
  }
}

std::optional<TypeValue> getTypeValue(const TypeEntry &entry, Operation *op) {
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
  switch (entry.source) {
  case TypeEntry::OperandTypes:
    return list(op->getOperandTypes());
  case TypeEntry::ResultTypes:
    return list(op->getResultTypes());
  case TypeEntry::OperandCount:
    value.isCount = true;
    return scalar((operands + entry.index) / entry.divisor);
  case TypeEntry::ResultCount:
    value.isCount = true;
    return scalar(results);
  case TypeEntry::ResultType:
    return entry.index < results ? scalar(getDataTypeOf(op->getResult(entry.index).getType())) : std::nullopt;
  case TypeEntry::OperandType: {
    int index = entry.index < 0 ? operands + entry.index : entry.index;
    return index >= 0 && index < operands ? scalar(getDataTypeOf(op->getOperand(index).getType())) : std::nullopt;
  }
  case TypeEntry::FixedType:
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

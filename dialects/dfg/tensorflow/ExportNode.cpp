//===- ExportNode.cpp - Operations as NodeDefs ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/ExportNode.h"
#include "dialects/dfg/VariableKinds.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/Types.h"

using namespace mlir;

namespace distc::tf {

ExportContext::ExportContext(ModuleOp module) : module(module), table(module.getContext()) {
  for (auto variable : module.getOps<dfg::VariableOp>())
    variables[variable.getSymName()] = variable;
}

/// Reads that references make by themselves, and a function's end, are no nodes.
static bool isNode(Operation &op) {
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op))
    return !read.getImplicit();
  return !llvm::isa<dfg::ReturnOp>(op);
}

BlockExporter::BlockExporter(ExportContext &shared, Block &block, ArrayRef<std::string> arguments, bool isFunction)
    : shared(shared), block(block), arguments(arguments), isFunction(isFunction) {
  // Nodes that passes made may have no name, or that of the node they stand for: each gets one of its own.
  llvm::StringSet<> taken;
  SmallVector<Operation *> unnamed;
  for (Operation &op : block) {
    if (!isNode(op))
      continue;
    StringRef name = dfg::getNodeName(&op);
    if (!name.empty() && taken.insert(name).second)
      names[&op] = name.str();
    else
      unnamed.push_back(&op);
  }
  for (Operation *op : unnamed) {
    StringRef stem = dfg::getNodeName(op);
    std::string base = stem.empty() ? op->getName().stripDialect().str() : stem.str(), name = base;
    for (unsigned count = 1; !taken.insert(name).second; ++count)
      name = base + "_" + std::to_string(count);
    names[op] = name;
  }
}

std::string BlockExporter::getInput(Value value) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value))
    return arguments[argument.getArgNumber()];
  Operation *op = value.getDefiningOp();
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op); read && read.getImplicit())
    return getInput(read.getHandle());
  unsigned number = llvm::cast<OpResult>(value).getResultNumber();
  std::string name = names.lookup(op);
  if (isFunction) {
    auto outputs = dfg::getSourceAttribute<ArrayAttr>(op, kOutputsKey);
    if (outputs && number < outputs.size())
      return name + ":" + llvm::cast<StringAttr>(outputs[number]).str();
    return name + ":output:" + std::to_string(number);
  }
  return number ? name + ":" + std::to_string(number) : name;
}

LogicalResult BlockExporter::run(google::protobuf::RepeatedPtrField<NodeDef> &nodes) {
  for (Operation &op : block)
    if (isNode(op) && failed(exportNode(&op, *nodes.Add())))
      return failure();
  return success();
}

LogicalResult BlockExporter::exportNode(Operation *op, NodeDef &node) {
  if (auto others = dfg::getSourceAttribute<dfg::RawAttr>(op, kRestKey))
    node.ParseFromString(others.getBytes().str());
  node.set_name(names.lookup(op));
  for (Value operand : op->getOperands())
    node.add_input(getInput(operand));
  for (StringRef control : dfg::getControlInputs(op))
    node.add_input("^" + control.str());
  if (auto device = op->getAttrOfType<StringAttr>(dfg::kDeviceAttr))
    node.set_device(device.str());
  return exportAttributes(op, node);
}

LogicalResult BlockExporter::exportAttributes(Operation *op, NodeDef &node) {
  DictionaryAttr rest = dfg::getSourceAttributes(op);
  auto set = [&](StringRef name, Attribute attribute) -> LogicalResult {
    if (exportAttribute(attribute, (*node.mutable_attr())[name.str()]))
      return success();
    return op->emitError() << "node '" << node.name() << "': TensorFlow has no form for attribute '" << name
                           << "': " << attribute;
  };
  auto setRest = [&]() -> LogicalResult {
    for (NamedAttribute entry : rest)
      if (!entry.getName().strref().starts_with("$") && failed(set(entry.getName(), entry.getValue())))
        return failure();
    return success();
  };
  if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op)) {
    node.set_op(opaque.getOp().str());
    return setRest();
  }
  if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
    if (dfg::VariableOp variable = shared.variables.lookup(handle.getVariable());
        shared.keepsCaptures && variable && variable.getKind() == dfg::kCapturedKind) {
      node.set_op("Placeholder");
      (*node.mutable_attr())["dtype"].set_type(DT_RESOURCE);
      (*node.mutable_attr())["shape"].mutable_shape();
      return setRest();
    }
  const KnownNode *known = shared.table.find(op->getName());
  if (!known)
    return op->emitError() << "node '" << node.name() << "': TensorFlow has no operation for '"
                           << op->getName().getStringRef() << "'";

  auto isReference = [&](StringRef variable) {
    auto it = shared.variables.find(variable);
    return it != shared.variables.end() && it->second.getKind() == "ref";
  };
  // What a reference holds now: its tensor is the variable's memory, which a later update changes in place.
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op)) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(read.getHandle());
    if (handle && isReference(handle.getVariable())) {
      node.set_op("DeepCopy");
      (*node.mutable_attr())["T"].set_type(getDataType(getElementTypeOrSelf(read.getValue().getType())));
      return success();
    }
  }
  unsigned nameIndex = getNameIndex(op, isReference);
  nameIndex = std::min<unsigned>(nameIndex, known->tensorFlowNames.size() - 1);
  auto written = rest.getAs<StringAttr>(kOpKey);
  node.set_op(written ? written.str() : known->tensorFlowNames[nameIndex].str());

  auto absent = rest.getAs<ArrayAttr>(kAbsentKey);
  auto isAbsent = [&](StringRef name) {
    return absent &&
           llvm::any_of(absent, [&](Attribute left) { return llvm::cast<StringAttr>(left).getValue() == name; });
  };
  for (const dfg::TypeRule &rule : known->types)
    if (std::optional<TypeValue> value = getTypeValue(rule, op); value && !isAbsent(rule.names[nameIndex])) {
      AttrValue &attr = (*node.mutable_attr())[rule.names[nameIndex].str()];
      if (value->isCount)
        attr.set_i(value->scalar);
      else if (value->isList)
        attr.mutable_list()->mutable_type()->Assign(value->types.begin(), value->types.end());
      else
        attr.set_type(static_cast<DataType>(value->scalar));
    }
  if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op)) {
    auto type = llvm::cast<TensorType>(shared.variables.lookup(handle.getVariable()).getType());
    (*node.mutable_attr())["dtype"].set_type(getDataType(type.getElementType()));
    setShape(type, *(*node.mutable_attr())["shape"].mutable_shape());
    // TensorFlow takes resource variables without a shared name for one variable.
    if (node.op() == "VarHandleOp")
      (*node.mutable_attr())["shared_name"].set_s(handle.getVariable().str());
  } else if (auto call = llvm::dyn_cast<dfg::CallOp>(op)) {
    (*node.mutable_attr())["f"].mutable_func()->set_name(call.getCallee().str());
  } else {
    for (StringAttr declared : known->name.getAttributeNames()) {
      Attribute attribute = op->getAttr(declared);
      if (!attribute || declared == "implicit" || isAbsent(declared))
        continue;
      if (failed(set(declared, attribute)))
        return failure();
    }
  }
  return setRest();
}

} // namespace distc::tf

//===- ImportBlock.cpp - NodeDefs into a block ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/ImportBlock.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/NodeSignature.h"
#include "dialects/dfg/tensorflow/SavedFunctions.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace distc::tf {

BlockImporter::BlockImporter(ImportContext &shared, Block *block, const NodeList &nodes)
    : shared(shared), context(shared.context), block(block), builder(context), nodes(nodes), isFunction(false),
      nodesByName(nodes.size()) {
  builder.setInsertionPointToEnd(block);
}

BlockImporter::BlockImporter(ImportContext &shared, Block *block, const NodeList &nodes, const ArgList &arguments)
    : BlockImporter(shared, block, nodes) {
  isFunction = true;
  for (const OpDef::ArgDef &argument : arguments) {
    nodesByName[argument.name()] = -1 - static_cast<int>(argumentTypes.size());
    argumentTypes.push_back(argument.type_attr().empty() ? argument.type() : DT_INVALID);
  }
}

LogicalResult BlockImporter::run(ArrayRef<StringRef> results) {
  if (failed(readSignatures()) || failed(readEdges()) || failed(checkInputs()))
    return failure();
  for (StringRef result : results) {
    std::optional<Output> from = parseInput(result, nullptr);
    if (!from || failed(checkOutput(*from, nullptr)))
      return failure();
    if (from->node >= 0)
      numOutputsUsed[from->node] = std::max(numOutputsUsed[from->node], from->output + 1);
  }
  dfg::Predecessors edges;
  llvm::BitVector writes(nodes.size());
  for (int node = 0; node < nodes.size(); ++node) {
    edges.begin.push_back(edges.predecessors.size());
    for (int edge = inputBegin[node]; edge < inputBegin[node + 1]; ++edge)
      edges.predecessors.push_back(isBackEdge[edge] ? -1 : inputs[edge].node);
    edges.predecessors.append(controls.begin() + controlBegin[node], controls.begin() + controlBegin[node + 1]);
    const KnownNode *known = shared.findNode(nodes[node].op()).node;
    writes[node] = !known || known->isUpdate || known->name.getStringRef() == dfg::CallOp::getOperationName();
  }
  edges.begin.push_back(edges.predecessors.size());
  SmallVector<int> order = dfg::sortNodes(edges, writes);
  if (static_cast<int>(order.size()) != nodes.size()) {
    llvm::BitVector sorted(nodes.size());
    for (int node : order)
      sorted.set(node);
    return shared.fail(&nodes[sorted.find_first_unset()])
           << "is part of, or waits for, a cycle of edges that is no loop";
  }

  created.resize(nodes.size());
  for (int node : order)
    if (failed(createNode(node)))
      return failure();
  // What comes back in a loop is known only now.
  for (int node = 0; node < nodes.size(); ++node)
    for (int edge = inputBegin[node]; edge < inputBegin[node + 1]; ++edge)
      if (isBackEdge[edge]) {
        Value value = getValue(inputs[edge], &nodes[node]);
        if (!value)
          return failure();
        created[node].op->setOperand(edge - inputBegin[node], value);
      }
  return success();
}

// ---- Signatures ------------------------------------------------------------------------

LogicalResult BlockImporter::readSignatures() {
  std::string problem;
  for (const NodeDef &node : nodes) {
    outputBegin.push_back(outputTypes.size());
    const OpDef *def = shared.getOpDef(node.op());
    bool isComplete = def != nullptr;
    if (def && (!checkAttributes(node, *def, shared.isNewer, problem) ||
                !getArgTypes(def->output_arg(), node, *def, outputTypes, isComplete, problem)))
      return shared.fail(&node) << problem;
    areOutputsKnown.push_back(isComplete);
  }
  outputBegin.push_back(outputTypes.size());
  return success();
}

DataType BlockImporter::getType(Output from) const {
  if (from.node < 0)
    return argumentTypes[-1 - from.node];
  int number = outputBegin[from.node] + from.output;
  return number < outputBegin[from.node + 1] ? outputTypes[number] : DT_INVALID;
}

LogicalResult BlockImporter::checkInputs() {
  SmallVector<DataType> wanted;
  std::string problem;
  for (int index = 0; index < nodes.size(); ++index) {
    const NodeDef &node = nodes[index];
    for (int edge = inputBegin[index]; edge < inputBegin[index + 1]; ++edge)
      if (failed(checkOutput(inputs[edge], &node)))
        return failure();
    const OpDef *def = shared.getOpDef(node.op());
    bool isComplete = false;
    wanted.clear();
    if (!def)
      continue;
    if (!getArgTypes(def->input_arg(), node, *def, wanted, isComplete, problem))
      return shared.fail(&node) << problem;
    int given = inputBegin[index + 1] - inputBegin[index];
    if (isComplete && given != static_cast<int>(wanted.size()))
      return shared.fail(&node) << "has " << given << " inputs, where its operation and attributes say "
                                << wanted.size();
    for (int number = 0; number < std::min<int>(given, wanted.size()); ++number) {
      DataType type = getType(inputs[inputBegin[index] + number]);
      if (!isCompatible(type, wanted[number]))
        return shared.fail(&node) << "takes '" << node.input(number) << "' of type " << getDataTypeName(type)
                                  << (isReference(type) ? " (reference)" : "") << " as input " << number
                                  << ", which must be " << getDataTypeName(wanted[number])
                                  << (isReference(wanted[number]) ? " (reference)" : "");
    }
  }
  return success();
}

LogicalResult BlockImporter::checkOutput(Output from, const NodeDef *user) const {
  if (from.node < 0 || !areOutputsKnown[from.node])
    return success();
  int count = outputBegin[from.node + 1] - outputBegin[from.node];
  if (from.output < count)
    return success();
  return shared.fail(user) << "takes output " << from.output << " of '" << nodes[from.node].name() << "' (op '"
                           << nodes[from.node].op() << "'), which has " << count;
}

// ---- Edges -----------------------------------------------------------------------------

LogicalResult BlockImporter::readEdges() {
  for (int node = 0; node < nodes.size(); ++node)
    if (!nodesByName.try_emplace(nodes[node].name(), node).second)
      return shared.fail(&nodes[node]) << "has the name of another node";
  numOutputsUsed.resize(nodes.size(), 0);
  for (int node = 0; node < nodes.size(); ++node) {
    inputBegin.push_back(inputs.size());
    controlBegin.push_back(controls.size());
    bool sawControl = false;
    for (llvm::StringRef input : nodes[node].input()) {
      if (input.consume_front("^")) {
        sawControl = true;
        auto it = nodesByName.find(input);
        if (it == nodesByName.end())
          return shared.fail(&nodes[node]) << "must run after '" << input << "', but there is no such node";
        if (it->second >= 0)
          controls.push_back(it->second);
        continue;
      }
      if (sawControl)
        return shared.fail(&nodes[node]) << "takes '" << input << "' behind a control edge; control edges come last";
      std::optional<Output> from = parseInput(input, &nodes[node]);
      if (!from)
        return failure();
      if (from->node >= 0)
        numOutputsUsed[from->node] = std::max(numOutputsUsed[from->node], from->output + 1);
      inputs.push_back(*from);
    }
  }
  inputBegin.push_back(inputs.size());
  controlBegin.push_back(controls.size());
  isBackEdge.resize(inputs.size());
  for (int node = 0; node < nodes.size(); ++node)
    if (llvm::StringRef(nodes[node].op()).ends_with("Merge"))
      for (int edge = inputBegin[node]; edge < inputBegin[node + 1]; ++edge)
        isBackEdge[edge] =
            inputs[edge].node >= 0 && llvm::StringRef(nodes[inputs[edge].node].op()).ends_with("NextIteration");
  return success();
}

std::optional<BlockImporter::Output> BlockImporter::parseInput(llvm::StringRef input, const NodeDef *user) {
  auto [name, output] = input.split(':');
  auto it = nodesByName.find(name);
  if (it == nodesByName.end()) {
    shared.fail(user) << "takes '" << input << "', but there is no node '" << name << "'";
    return std::nullopt;
  }
  int index = 0;
  if (it->second < 0 || output.empty())
    return Output{it->second, 0};
  if (!isFunction) {
    if (output.getAsInteger(10, index) || index < 0) {
      shared.fail(user) << "takes '" << input << "', which is no output of a node";
      return std::nullopt;
    }
    return Output{it->second, index};
  }
  auto [outputName, position] = output.split(':');
  if (!position.empty() && (position.getAsInteger(10, index) || index < 0)) {
    shared.fail(user) << "takes '" << input << "', which is no output of a node";
    return std::nullopt;
  }
  auto &names = outputNames[it->second];
  const auto *seen = llvm::find_if(names, [&](const auto &entry) { return entry.second == output; });
  if (seen != names.end())
    return Output{it->second, seen->first};
  // Of an operation that nothing is known of, outputs are numbered as they are met.
  const NodeDef &node = nodes[it->second];
  const OpDef *def = shared.getOpDef(node.op());
  int first = def ? getOutputNumber(outputName, node, *def) : 0;
  if (first < 0) {
    shared.fail(user) << "takes '" << input << "', but '" << name << "' (op '" << node.op() << "') has no output '"
                      << outputName << "'";
    return std::nullopt;
  }
  int flat = def ? first + index : static_cast<int>(names.size());
  names.emplace_back(flat, output);
  return Output{it->second, flat};
}

Value BlockImporter::getValue(Output from, const NodeDef *user) {
  if (from.node < 0)
    return block->getArgument(-1 - from.node);
  Created &source = created[from.node];
  if (source.handle && from.output == 0)
    return source.handle;
  if (from.output >= static_cast<int>(source.op->getNumResults())) {
    shared.fail(user) << "takes output " << from.output << " of '" << nodes[from.node].name() << "' (op '"
                      << nodes[from.node].op() << "'), which has " << source.op->getNumResults();
    return {};
  }
  return source.op->getResult(from.output);
}

DataType BlockImporter::lookupType(llvm::StringRef input) {
  std::optional<Output> from = parseInput(input, nullptr);
  return from ? getType(*from) : DT_INVALID;
}

Value BlockImporter::lookup(llvm::StringRef input) {
  std::optional<Output> from = parseInput(input, nullptr);
  return from ? getValue(*from, nullptr) : Value();
}

LogicalResult BlockImporter::getOperands(int index, SmallVectorImpl<Value> &operands) {
  for (int edge = inputBegin[index]; edge < inputBegin[index + 1]; ++edge) {
    if (isBackEdge[edge]) {
      operands.push_back({});
      continue;
    }
    operands.push_back(getValue(inputs[edge], &nodes[index]));
    if (!operands.back())
      return failure();
  }
  // A back edge is bound when everything is there; until then the other input stands for it.
  for (Value &operand : operands)
    if (!operand)
      for (Value other : operands)
        if (other)
          operand = other;
  if (llvm::is_contained(operands, Value()))
    return shared.fail(&nodes[index]) << "has no input from outside its loop";
  return success();
}

// ---- Nodes -----------------------------------------------------------------------------

static const AttrValue *findAttr(const NodeDef &node, StringRef name) {
  auto it = node.attr().find(name.str());
  return it == node.attr().end() ? nullptr : &it->second;
}

/// A resource has no type in the graph; what it holds TensorFlow compares with what the node says when it runs.
LogicalResult BlockImporter::checkVariableTypes(const NodeDef &node, Operation *op) const {
  const AttrValue *attr = findAttr(node, "dtype");
  StringRef name = attr ? "dtype" : "T";
  if (!attr)
    attr = findAttr(node, name);
  if (!attr || llvm::isa<dfg::VarHandleOp, dfg::IdentityOp, dfg::CallOp>(op))
    return success();
  for (Value operand : op->getOperands()) {
    if (!llvm::isa<dfg::RefType>(operand.getType()))
      continue;
    DataType held = getDataTypeOf(llvm::cast<dfg::RefType>(operand.getType()).getValueType());
    dfg::VarHandleOp handle = dfg::getVariableHandle(operand);
    if (handle && held != DT_INVALID && attr->type() != held)
      return shared.fail(&node) << "has '" << name << "' " << getDataTypeName(attr->type()) << ", but variable '"
                                << handle.getVariable() << "' holds " << getDataTypeName(held);
  }
  return success();
}

/// Whether a modelled attribute is left to a function's instantiation, which operations have no form for.
static bool hasPlaceholders(const NodeDef &node) {
  return llvm::any_of(node.attr(),
                      [](const auto &entry) { return entry.second.value_case() == AttrValue::kPlaceholder; });
}

/// The graph of a concrete function has placeholders of the resources that it captured: handles of its variables.
LogicalResult BlockImporter::createCapture(int index, Type type) {
  const NodeDef &node = nodes[index];
  dfg::VariableOp variable = shared.addCaptured(node, type);
  OperationState state(NameLoc::get(builder.getStringAttr(node.name())), dfg::VarHandleOp::getOperationName());
  state.addTypes(dfg::RefType::get(context, variable.getType()));
  state.addAttribute("variable", FlatSymbolRefAttr::get(variable.getSymNameAttr()));
  SmallVector<NamedAttribute> rest;
  std::string problem;
  for (const auto &[key, value] : node.attr())
    if (key != "dtype" && key != "shape") {
      Attribute attribute = importAttribute(value, context, problem);
      if (!attribute)
        return shared.fail(&node) << "attribute '" << key << "': " << problem;
      rest.emplace_back(builder.getStringAttr(key), attribute);
    }
  addEdges(index, state, rest);
  created[index].op = builder.create(state);
  dfg::setSourceAttributes(created[index].op, rest);
  return success();
}

LogicalResult BlockImporter::createNode(int index) {
  const NodeDef &node = nodes[index];
  if (Type captured =
          isFunction ? Type() : getCapturedType(node, nodes, shared.file.meta->graph_def().library(), context))
    return createCapture(index, captured);
  SmallVector<Value> operands;
  if (failed(getOperands(index, operands)))
    return failure();
  auto [known, nameIndex] = shared.findNode(node.op());
  auto loc = NameLoc::get(builder.getStringAttr(node.name()));
  dfg::VariableOp variable;
  if (known && known->name.getStringRef() == dfg::VarHandleOp::getOperationName())
    variable = shared.getVariable(node, /*isReference=*/nameIndex != 1);
  bool isVariable = known && known->name.getStringRef() == dfg::VarHandleOp::getOperationName();

  SmallVector<Type> types;
  if (known && (hasPlaceholders(node) || !areOutputsKnown[index] || (isVariable && !variable)))
    known = nullptr;
  if (!known) {
    Operation *op = createOpaque(index, operands, {});
    return success(op != nullptr);
  }

  OperationState state(loc, known->name);
  state.operands.append(operands.begin(), operands.end());
  SmallVector<NamedAttribute> rest;
  if (variable) {
    types.push_back(dfg::RefType::get(context, variable.getType()));
    state.addAttribute("variable", FlatSymbolRefAttr::get(variable.getSymNameAttr()));
  } else {
    getResultTypes(index, *known, operands, types);
  }
  if (failed(addAttributes(node, known, nameIndex, state, rest)))
    return failure();
  // A constant of a kind that MLIR has no elements for.
  if (known->name.getStringRef() == dfg::ConstOp::getOperationName()) {
    DataType type = findAttr(node, "value")->tensor().dtype();
    if (type != outputTypes[outputBegin[index]])
      return shared.fail(&node) << "is " << getDataTypeName(type) << ", and its attribute 'dtype' says "
                                << getDataTypeName(outputTypes[outputBegin[index]]);
    auto value = llvm::dyn_cast_or_null<ElementsAttr>(state.attributes.get("value"));
    if (!value)
      return success(createOpaque(index, operands, types) != nullptr);
    types = {value.getShapedType()};
  }
  addEdges(index, state, rest);
  state.addTypes(types);

  Operation *op = builder.create(state);
  dfg::setSourceAttributes(op, rest);
  created[index].op = op;
  bool needsCheck = !known->isPure ||
                    llvm::any_of(operands, [](Value operand) { return llvm::isa<dfg::RefType>(operand.getType()); });
  if (needsCheck && !resolveReferences(op, index)) {
    op->erase();
    created[index].op = nullptr;
    return success(createOpaque(index, operands, types) != nullptr);
  }
  if (failed(checkVariableTypes(node, op)))
    return failure();
  if (known->isUpdate && nameIndex == 0)
    created[index].handle = op->getOperand(0);
  keepTypeAttributes(node, *known, nameIndex, op);
  return success();
}

LogicalResult BlockImporter::addAttributes(const NodeDef &node, const KnownNode *known, unsigned nameIndex,
                                           OperationState &state, SmallVectorImpl<NamedAttribute> &rest) {
  std::string problem;
  bool isCall = known && known->name.getStringRef() == dfg::CallOp::getOperationName();
  bool isVariable = known && known->name.getStringRef() == dfg::VarHandleOp::getOperationName();
  unsigned present = 0;
  for (const auto &[key, value] : node.attr()) {
    if (known) {
      // Checked, and kept where they do not follow, once the operation is there.
      if (llvm::any_of(known->types, [&](const dfg::TypeRule &rule) {
            return rule.source != dfg::TypeRule::FixedType && rule.names[std::min(nameIndex, 1u)] == key;
          }))
        continue;
      if (isVariable && (key == "dtype" || key == "shape"))
        continue;
      if (isCall && key == "f") {
        state.addAttribute("callee", FlatSymbolRefAttr::get(context, value.func().name()));
        if (value.func().attr().empty())
          continue;
      }
    }
    Attribute attribute = importAttribute(value, context, problem);
    if (!attribute)
      return shared.fail(&node) << "attribute '" << key << "': " << problem;
    StringAttr declared = known && !isCall && !isVariable ? known->getAttributeName(key) : StringAttr();
    if (declared) {
      ++present;
      state.attributes.append(declared, attribute);
    } else {
      rest.emplace_back(builder.getStringAttr(key), attribute);
    }
  }
  if (isCall && nameIndex == 1)
    state.addAttribute("stateful", builder.getUnitAttr());
  if (!known || isCall || isVariable)
    return success();
  SmallVector<Attribute> absent;
  auto addAbsent = [&](StringRef name) {
    if (!node.attr().contains(name.str()))
      absent.push_back(builder.getStringAttr(name));
  };
  if (present != known->name.getAttributeNames().size())
    for (StringAttr declared : known->name.getAttributeNames())
      if (declared != "implicit")
        addAbsent(declared);
  for (const dfg::TypeRule &rule : known->types)
    if (rule.source != dfg::TypeRule::FixedType)
      addAbsent(rule.names[std::min(nameIndex, 1u)]);
  if (!absent.empty())
    rest.emplace_back(builder.getStringAttr(kAbsentKey), builder.getArrayAttr(absent));
  return success();
}

/// Device, control edges that data edges do not imply, and what else the NodeDef says.
void BlockImporter::addEdges(int index, OperationState &state, SmallVectorImpl<NamedAttribute> &rest) {
  const NodeDef &node = nodes[index];
  if (!node.device().empty())
    state.addAttribute(dfg::kDeviceAttr, builder.getStringAttr(node.device()));
  SmallVector<Attribute> names;
  for (int edge = controlBegin[index]; edge < controlBegin[index + 1]; ++edge) {
    auto data = ArrayRef(inputs).slice(inputBegin[index], inputBegin[index + 1] - inputBegin[index]);
    if (llvm::none_of(data, [&](const Output &from) { return from.node == controls[edge]; }))
      names.push_back(builder.getStringAttr(nodes[controls[edge]].name()));
  }
  if (!names.empty())
    state.addAttribute(dfg::kControlAttr, builder.getArrayAttr(names));

  if (node.has_experimental_debug_info() || !node.GetReflection()->GetUnknownFields(node).empty()) {
    NodeDef others;
    if (node.has_experimental_debug_info())
      *others.mutable_experimental_debug_info() = node.experimental_debug_info();
    others.GetReflection()->MutableUnknownFields(&others)->MergeFrom(node.GetReflection()->GetUnknownFields(node));
    rest.emplace_back(builder.getStringAttr(kRestKey),
                      dfg::RawAttr::get(context, builder.getStringAttr(serialize(others))));
  }
  if (auto it = outputNames.find(index); it != outputNames.end()) {
    SmallVector<Attribute> outputs;
    for (auto [flat, name] : it->second) {
      if (flat >= static_cast<int>(outputs.size()))
        outputs.resize(flat + 1, builder.getStringAttr(""));
      outputs[flat] = builder.getStringAttr(name);
    }
    rest.emplace_back(builder.getStringAttr(kOutputsKey), builder.getArrayAttr(outputs));
  }
}

void BlockImporter::addControl(Operation *op, StringRef name) {
  SmallVector<Attribute> names;
  if (auto old = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr))
    llvm::append_range(names, old);
  names.push_back(builder.getStringAttr(name));
  op->setAttr(dfg::kControlAttr, builder.getArrayAttr(names));
}

static void addToTensorFlow(Operation *op, ArrayRef<NamedAttribute> more) {
  NamedAttrList all(dfg::getSourceAttributes(op));
  all.append(more);
  dfg::setSourceAttributes(op, all);
}

static bool agrees(const TypeValue &value, const AttrValue &attr) {
  if (value.isList)
    return llvm::equal(value.types, attr.list().type());
  return value.isCount ? attr.i() == value.scalar : attr.type() == value.scalar;
}

/// Type attributes that do not follow from the operation's types as it stands, and its name where that does not follow.
void BlockImporter::keepTypeAttributes(const NodeDef &node, const KnownNode &known, unsigned nameIndex, Operation *op) {
  SmallVector<NamedAttribute> kept;
  for (const dfg::TypeRule &rule : known.types) {
    auto it = node.attr().find(rule.names[std::min(nameIndex, 1u)].str());
    if (rule.source == dfg::TypeRule::FixedType || it == node.attr().end())
      continue;
    std::optional<TypeValue> value = getTypeValue(rule, op);
    std::string problem;
    if (!value || !agrees(*value, it->second))
      kept.emplace_back(builder.getStringAttr(it->first), importAttribute(it->second, context, problem));
  }
  if (getNameIndex(op, [&](StringRef variable) { return shared.isReference(variable); }) != nameIndex)
    kept.emplace_back(builder.getStringAttr(kOpKey), builder.getStringAttr(node.op()));
  if (!kept.empty())
    addToTensorFlow(op, kept);
}

// ---- Types -----------------------------------------------------------------------------

static const TensorShapeProto *getOutputShape(const NodeDef &node, int output) {
  const AttrValue *shapes = findAttr(node, "_output_shapes");
  return shapes && output < shapes->list().shape_size() ? &shapes->list().shape(output) : nullptr;
}

bool BlockImporter::isResourceHandle(Value value) const {
  if (!llvm::isa<dfg::RefType>(value.getType()))
    return false;
  dfg::VarHandleOp handle = dfg::getVariableHandle(value);
  return handle && !shared.isReference(handle.getVariable());
}

void BlockImporter::getResultTypes(int index, const KnownNode &known, ArrayRef<Value> operands,
                                   SmallVectorImpl<Type> &types) {
  const NodeDef &node = nodes[index];
  bool ofVariable = known.isUpdate || known.name.getStringRef() == dfg::ReadVariableOp::getOperationName();
  // The identity of a handle is that handle.
  bool isHandle = known.name.getStringRef() == dfg::IdentityOp::getOperationName() && isResourceHandle(operands[0]);
  for (int result = 0, count = outputBegin[index + 1] - outputBegin[index]; result < count; ++result) {
    auto handle = operands.empty() ? dfg::RefType() : llvm::dyn_cast<dfg::RefType>(operands[0].getType());
    if (isHandle) {
      types.push_back(operands[0].getType());
    } else if (ofVariable && handle) {
      types.push_back(handle.getValueType());
    } else {
      const TensorShapeProto *shape = getOutputShape(node, result);
      if (!shape && known.name.getStringRef() == dfg::PlaceholderOp::getOperationName())
        if (const AttrValue *declared = findAttr(node, "shape"))
          shape = &declared->shape();
      types.push_back(getTensorType(shape, getElementTypeOrUnknown(outputTypes[outputBegin[index] + result])));
    }
  }
}

Type BlockImporter::getElementTypeOrUnknown(DataType type) const {
  Type element = getElementType(type, context);
  return element ? element : dfg::UnknownType::get(context);
}

/// As many as its operation's definition says; without one, as many as are used, of unknown types.
void BlockImporter::getOpaqueTypes(int index, SmallVectorImpl<Type> &types) {
  auto known = ArrayRef(outputTypes).slice(outputBegin[index], outputBegin[index + 1] - outputBegin[index]);
  int count = areOutputsKnown[index] ? known.size() : std::max<int>(known.size(), numOutputsUsed[index]);
  for (int output = 0; output < count; ++output)
    types.push_back(
        getTensorType(getOutputShape(nodes[index], output),
                      getElementTypeOrUnknown(output < static_cast<int>(known.size()) ? known[output] : DT_INVALID)));
}

// ---- References --------------------------------------------------------------------------

/// Whether input `operand` of an operation without semantics is a reference; where nothing is known of it, it is.
bool BlockImporter::isHandleInput(const NodeDef &node, int operand) const {
  const OpDef *def = shared.getOpDef(node.op());
  SmallVector<DataType> types;
  bool isComplete;
  std::string problem;
  if (!def || !getArgTypes(def->input_arg(), node, *def, types, isComplete, problem) ||
      operand >= static_cast<int>(types.size()))
    return true;
  return isReference(types[operand]);
}

Operation *BlockImporter::createOpaque(int index, ArrayRef<Value> operands, ArrayRef<Type> known) {
  const NodeDef &node = nodes[index];
  SmallVector<Type> types(known);
  if (known.empty())
    getOpaqueTypes(index, types);
  OperationState state(NameLoc::get(builder.getStringAttr(node.name())), dfg::OpaqueOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttribute("op", builder.getStringAttr(node.op()));
  if (shared.isStateless(node.op()))
    state.addAttribute("stateless", builder.getUnitAttr());
  SmallVector<NamedAttribute> rest;
  if (failed(addAttributes(node, nullptr, 0, state, rest)))
    return nullptr;
  addEdges(index, state, rest);
  Operation *op = builder.create(state);
  dfg::setSourceAttributes(op, rest);
  created[index].op = op;
  for (OpOperand &operand : op->getOpOperands()) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(operand.get());
    int edge = inputBegin[index] + operand.getOperandNumber();
    if (handle && shared.isReference(handle.getVariable()) && !isHandleInput(node, operand.getOperandNumber()) &&
        !isBackEdge[edge])
      operand.set(getReferenceValue(op, operand.get(), inputs[edge]));
  }
  return op;
}

/// What `user` sees that takes a reference as a value: what the update gave it came from wrote, or what the variable
/// holds now.
Value BlockImporter::getReferenceValue(Operation *user, Value handle, Output from) {
  if (from.node >= 0 && created[from.node].handle)
    return created[from.node].op->getResult(from.output);
  OpBuilder before(context);
  before.setInsertionPoint(user);
  auto type = llvm::cast<dfg::RefType>(handle.getType()).getValueType();
  auto read = dfg::ReadVariableOp::create(before, UnknownLoc::get(context), type, handle, /*implicit=*/true);
  return read.getValue();
}

bool BlockImporter::resolveReferences(Operation *op, int index) {
  llvm::SmallBitVector isHandleOperand(op->getNumOperands());
  bool takesAnything = llvm::isa<dfg::CallOp>(op);
  if (auto effects = llvm::dyn_cast<MemoryEffectOpInterface>(op)) {
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    for (const MemoryEffects::EffectInstance &instance : instances)
      if (auto *operand = instance.getEffectValue<OpOperand *>())
        isHandleOperand.set(operand->getOperandNumber());
  }
  SmallVector<std::pair<std::pair<Value, int>, Value>> reads;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Value value = operand.get();
    Output from = inputs[inputBegin[index] + number];
    if (isHandleOperand[number]) {
      if (!dfg::isHandle(value.getType()))
        return false;
      // The variable's own handle loses that the update it came through must run.
      if (from.node >= 0 && created[from.node].handle)
        addControl(op, nodes[from.node].name());
      continue;
    }
    if (!llvm::isa<dfg::RefType>(value.getType()) || takesAnything)
      continue;
    if (llvm::isa<dfg::IdentityOp, dfg::VariableShapeOp>(op) && isResourceHandle(value))
      continue;
    dfg::VarHandleOp handle = dfg::getVariableHandle(value);
    if (!handle || !shared.isReference(handle.getVariable()))
      return false;
    // A node reads a variable once, however often it takes it.
    auto *known = llvm::find_if(reads, [&](auto &read) { return read.first == std::pair(value, from.node); });
    if (known != reads.end()) {
      operand.set(known->second);
      continue;
    }
    operand.set(getReferenceValue(op, value, from));
    reads.emplace_back(std::pair(value, from.node), operand.get());
  }
  return true;
}

} // namespace distc::tf

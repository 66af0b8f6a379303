//===- NodeSignature.cpp - A node against its operation's definition ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/NodeSignature.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::StringRef;

namespace distc::tf {

constexpr int kMaxRank = 254;
constexpr int64_t kMaxArgs = 1 << 20;

static const AttrValue *findAttribute(const NodeDef &node, StringRef name) {
  auto it = node.attr().find(name.str());
  return it == node.attr().end() ? nullptr : &it->second;
}

const AttrValue *getAttributeOrDefault(const NodeDef &node, const OpDef &def, StringRef name) {
  if (const AttrValue *value = findAttribute(node, name))
    return value;
  for (const OpDef::AttrDef &attr : def.attr())
    if (attr.name() == name && attr.has_default_value())
      return &attr.default_value();
  return nullptr;
}

bool isValidShape(const TensorShapeProto &shape, bool isPartial) {
  if (shape.unknown_rank())
    return isPartial && shape.dim_size() == 0;
  if (shape.dim_size() > kMaxRank)
    return false;
  // From the first open size on TensorFlow does not count.
  bool isKnown = true;
  int64_t elements = 1;
  for (const TensorShapeProto::Dim &dim : shape.dim()) {
    if (dim.size() < (isPartial ? -1 : 0))
      return false;
    isKnown &= dim.size() >= 0;
    if (isKnown && llvm::MulOverflow(elements, dim.size(), elements))
      return false;
  }
  return true;
}

// ---- Attributes ----------------------------------------------------------------------

static bool isValidType(int type) {
  return type > DT_INVALID && DataType_IsValid(type) && !isReference(static_cast<DataType>(type));
}

static StringRef getKind(const AttrValue &value) {
  switch (value.value_case()) {
  case AttrValue::kS:
    return "string";
  case AttrValue::kI:
    return "int";
  case AttrValue::kF:
    return "float";
  case AttrValue::kB:
    return "bool";
  case AttrValue::kType:
    return "type";
  case AttrValue::kShape:
    return "shape";
  case AttrValue::kTensor:
    return "tensor";
  case AttrValue::kFunc:
    return "func";
  case AttrValue::kList:
    return "list";
  case AttrValue::kPlaceholder:
    return "placeholder";
  case AttrValue::VALUE_NOT_SET:
    return "nothing";
  }
  return "nothing";
}

/// How many entries of a list are of `kind`.
static int64_t getLength(const AttrValue::ListValue &list, StringRef kind) {
  if (kind == "list(string)")
    return list.s_size();
  if (kind == "list(int)")
    return list.i_size();
  if (kind == "list(float)")
    return list.f_size();
  if (kind == "list(bool)")
    return list.b_size();
  if (kind == "list(type)")
    return list.type_size();
  if (kind == "list(shape)")
    return list.shape_size();
  if (kind == "list(tensor)")
    return list.tensor_size();
  if (kind == "list(func)")
    return list.func_size();
  return 0;
}

static int64_t getLength(const AttrValue::ListValue &list) {
  return static_cast<int64_t>(list.s_size()) + list.i_size() + list.f_size() + list.b_size() + list.type_size() +
         list.shape_size() + list.tensor_size() + list.func_size();
}

static bool checkValid(const AttrValue &value, std::string &problem) {
  auto isType = [&](int type) {
    if (!isValidType(type))
      problem = "holds " + std::to_string(type) + ", which is no type";
    return problem.empty();
  };
  auto isShape = [&](const TensorShapeProto &shape, bool isPartial) {
    if (!isValidShape(shape, isPartial))
      problem = "holds a shape that no tensor can have";
    return problem.empty();
  };
  auto isTensor = [&](const TensorProto &tensor) { return isShape(tensor.tensor_shape(), /*isPartial=*/false); };
  switch (value.value_case()) {
  case AttrValue::kType:
    return isType(value.type());
  case AttrValue::kShape:
    return isShape(value.shape(), /*isPartial=*/true);
  case AttrValue::kTensor:
    return isTensor(value.tensor());
  case AttrValue::kList:
    return llvm::all_of(value.list().type(), isType) &&
           llvm::all_of(value.list().shape(), [&](const TensorShapeProto &shape) { return isShape(shape, true); }) &&
           llvm::all_of(value.list().tensor(), isTensor);
  default:
    return true;
  }
}

template <typename Range> static std::string join(const Range &values) {
  std::string text;
  for (const auto &value : values)
    text += (text.empty() ? "" : ", ") + std::string(value);
  return text;
}

static bool checkAllowed(const AttrValue &value, const AttrValue::ListValue &allowed, std::string &problem) {
  auto isAllowedType = [&](int type) {
    if (llvm::is_contained(allowed.type(), type))
      return true;
    problem = "is " + getDataTypeName(static_cast<DataType>(type)).str() + ", which is not one of " +
              join(llvm::map_range(allowed.type(),
                                   [](int entry) { return getDataTypeName(static_cast<DataType>(entry)).str(); }));
    return false;
  };
  auto isAllowedString = [&](const std::string &text) {
    if (llvm::is_contained(allowed.s(), text))
      return true;
    problem = "is '" + text + "', which is not one of " + join(allowed.s());
    return false;
  };
  if (value.value_case() == AttrValue::kType)
    return isAllowedType(value.type());
  if (value.value_case() == AttrValue::kS)
    return isAllowedString(value.s());
  return llvm::all_of(value.list().type(), isAllowedType) && llvm::all_of(value.list().s(), isAllowedString);
}

static bool checkAttribute(const AttrValue &value, const OpDef::AttrDef &attr, bool isNewer, std::string &problem) {
  // A function's instantiation brings the value.
  if (value.value_case() == AttrValue::kPlaceholder)
    return true;
  StringRef kind = attr.type(), given = getKind(value);
  bool isList = kind.starts_with("list(");
  if (given != (isList ? "list" : kind) || (isList && getLength(value.list(), kind) != getLength(value.list()))) {
    problem = "holds " + given.str() + (isList && given == "list" ? " of another kind" : "") + ", not " + kind.str();
    return false;
  }
  if (!checkValid(value, problem))
    return false;
  int64_t number = isList ? getLength(value.list(), kind) : value.i();
  if (attr.has_minimum() && number < attr.minimum()) {
    problem = (isList ? "has " + std::to_string(number) + " entries" : "is " + std::to_string(number)) +
              ", less than " + std::to_string(attr.minimum());
    return false;
  }
  return !attr.has_allowed_values() || isNewer || checkAllowed(value, attr.allowed_values().list(), problem);
}

bool checkAttributes(const NodeDef &node, const OpDef &def, bool isNewer, std::string &problem) {
  unsigned known = 0;
  for (const OpDef::AttrDef &attr : def.attr()) {
    const AttrValue *value = findAttribute(node, attr.name());
    known += value != nullptr;
    if (!value && !attr.has_default_value()) {
      problem = "attribute '" + attr.name() + "' (" + attr.type() + ") is missing";
      return false;
    }
    if (value && !checkAttribute(*value, attr, isNewer, problem)) {
      problem = "attribute '" + attr.name() + "' " + problem;
      return false;
    }
  }
  if (known == node.attr().size())
    return true;
  for (const auto &[name, value] : node.attr()) {
    // Names with a leading underscore are for all operations.
    if (llvm::any_of(def.attr(), [&](const OpDef::AttrDef &attr) { return attr.name() == name; }))
      continue;
    if (!isNewer && !StringRef(name).starts_with("_")) {
      problem = "attribute '" + name + "' is none of the operation's";
      return false;
    }
    if (!checkValid(value, problem)) {
      problem = "attribute '" + name + "' " + problem;
      return false;
    }
  }
  return true;
}

// ---- Inputs and outputs --------------------------------------------------------------

/// How many inputs or outputs `arg` is; none where a function's instantiation says.
static std::optional<int64_t> getCount(const OpDef::ArgDef &arg, const NodeDef &node, const OpDef &def) {
  if (arg.number_attr().empty() && arg.type_list_attr().empty())
    return 1;
  bool isNumber = !arg.number_attr().empty();
  const AttrValue *value = getAttributeOrDefault(node, def, isNumber ? arg.number_attr() : arg.type_list_attr());
  if (!value || value->value_case() == AttrValue::kPlaceholder)
    return std::nullopt;
  return isNumber ? value->i() : value->list().type_size();
}

bool getArgTypes(const ArgList &args, const NodeDef &node, const OpDef &def, llvm::SmallVectorImpl<DataType> &types,
                 bool &isComplete, std::string &problem) {
  isComplete = true;
  for (const OpDef::ArgDef &arg : args) {
    std::optional<int64_t> count = getCount(arg, node, def);
    if (!count) {
      isComplete = false;
      return true;
    }
    if (*count < 0 || *count + static_cast<int64_t>(types.size()) > kMaxArgs) {
      problem = "says that '" + arg.name() + "' is " + std::to_string(*count) + " tensors";
      return false;
    }
    auto add = [&](int type) {
      types.push_back(arg.is_ref() ? getReferenceType(static_cast<DataType>(type)) : static_cast<DataType>(type));
    };
    if (!arg.type_list_attr().empty()) {
      for (int type : getAttributeOrDefault(node, def, arg.type_list_attr())->list().type())
        add(type);
      continue;
    }
    DataType type = arg.type();
    if (!arg.type_attr().empty())
      if (const AttrValue *value = getAttributeOrDefault(node, def, arg.type_attr()))
        type = value->type();
    for (int64_t i = 0; i < *count; ++i)
      add(type);
  }
  return true;
}

int getOutputNumber(StringRef name, const NodeDef &node, const OpDef &def) {
  int64_t number = 0;
  for (const OpDef::ArgDef &arg : def.output_arg()) {
    if (arg.name() == name)
      return static_cast<int>(number);
    number += getCount(arg, node, def).value_or(0);
  }
  return -1;
}

bool isCompatible(DataType given, DataType wanted) {
  DataType givenValue = getValueType(given), wantedValue = getValueType(wanted);
  if (isReference(wanted) && !isReference(given) && given != DT_INVALID)
    return false;
  return givenValue == DT_INVALID || wantedValue == DT_INVALID || givenValue == wantedValue;
}

} // namespace distc::tf

//===- Attributes.cpp - AttrValue as an attribute and back --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/tensorflow/Tensors.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "mlir/IR/Builders.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

using namespace mlir;

namespace distc::tf {

bool serialize(const google::protobuf::Message &message, std::string &bytes) {
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  return message.SerializeToCodedStream(&coded);
}

std::string serialize(const google::protobuf::Message &message) {
  std::string bytes;
  (void)serialize(message, bytes);
  return bytes;
}

static Attribute importRaw(const google::protobuf::Message &message, MLIRContext *context) {
  return dfg::RawAttr::get(context, StringAttr::get(context, serialize(message)));
}

static Attribute importShape(const TensorShapeProto &shape, MLIRContext *context) {
  SmallVector<int64_t> sizes;
  for (const TensorShapeProto::Dim &dim : shape.dim())
    sizes.push_back(dim.size());
  return dfg::TensorShapeAttr::get(context, shape.unknown_rank(), sizes);
}

static Attribute importFunction(const NameAttrList &function, MLIRContext *context, std::string &problem) {
  SmallVector<NamedAttribute> attributes;
  for (const auto &[name, value] : function.attr()) {
    Attribute attribute = importAttribute(value, context, problem);
    if (!attribute)
      return {};
    attributes.emplace_back(StringAttr::get(context, name), attribute);
  }
  return dfg::FuncAttr::get(context, FlatSymbolRefAttr::get(context, function.name()),
                            DictionaryAttr::get(context, attributes));
}

static Attribute importList(const AttrValue &value, MLIRContext *context, std::string &problem) {
  Builder builder(context);
  const AttrValue::ListValue &list = value.list();
  SmallVector<Attribute> elements;
  for (const std::string &element : list.s())
    elements.push_back(builder.getStringAttr(element));
  for (int64_t element : list.i())
    elements.push_back(builder.getI64IntegerAttr(element));
  for (float element : list.f())
    elements.push_back(builder.getF32FloatAttr(element));
  for (bool element : list.b())
    elements.push_back(builder.getBoolAttr(element));
  for (int element : list.type()) {
    Type type = getElementType(static_cast<DataType>(element), context);
    if (!type)
      return importRaw(value, context);
    elements.push_back(TypeAttr::get(type));
  }
  for (const TensorShapeProto &element : list.shape())
    elements.push_back(importShape(element, context));
  for (const NameAttrList &element : list.func())
    elements.push_back(importFunction(element, context, problem));
  for (const TensorProto &element : list.tensor()) {
    ElementsAttr tensor = importTensor(element, context, problem);
    if (!tensor)
      return problem.empty() ? importRaw(value, context) : Attribute();
    elements.push_back(tensor);
  }
  return problem.empty() ? builder.getArrayAttr(elements) : Attribute();
}

Attribute importAttribute(const AttrValue &value, MLIRContext *context, std::string &problem) {
  Builder builder(context);
  switch (value.value_case()) {
  case AttrValue::kS:
    return builder.getStringAttr(value.s());
  case AttrValue::kI:
    return builder.getI64IntegerAttr(value.i());
  case AttrValue::kF:
    return builder.getF32FloatAttr(value.f());
  case AttrValue::kB:
    return builder.getBoolAttr(value.b());
  case AttrValue::kType:
    // A reference type would lose its mark: it stays as it came.
    if (Type type = value.type() < DT_FLOAT_REF ? getElementType(value.type(), context) : Type())
      return TypeAttr::get(type);
    return importRaw(value, context);
  case AttrValue::kShape:
    return importShape(value.shape(), context);
  case AttrValue::kTensor: {
    ElementsAttr tensor = importTensor(value.tensor(), context, problem);
    return tensor || !problem.empty() ? Attribute(tensor) : importRaw(value, context);
  }
  case AttrValue::kList:
    return importList(value, context, problem);
  case AttrValue::kFunc:
    return importFunction(value.func(), context, problem);
  case AttrValue::kPlaceholder:
    return dfg::PlaceholderAttr::get(context, value.placeholder());
  case AttrValue::VALUE_NOT_SET:
    return importRaw(value, context);
  }
  return {};
}

static void exportShape(dfg::TensorShapeAttr shape, TensorShapeProto &proto) {
  proto.set_unknown_rank(shape.getUnknownRank());
  for (int64_t size : shape.getSizes())
    proto.add_dim()->set_size(size);
}

static bool exportFunction(dfg::FuncAttr function, NameAttrList &proto) {
  proto.set_name(function.getFunction().getValue().str());
  for (NamedAttribute entry : function.getAttributes())
    if (!exportAttribute(entry.getValue(), (*proto.mutable_attr())[entry.getName().str()]))
      return false;
  return true;
}

static bool exportElement(Attribute attribute, AttrValue::ListValue &list) {
  if (auto string = llvm::dyn_cast<StringAttr>(attribute))
    return list.add_s(string.getValue().str()), true;
  if (auto boolean = llvm::dyn_cast<BoolAttr>(attribute))
    return list.add_b(boolean.getValue()), true;
  if (auto integer = llvm::dyn_cast<IntegerAttr>(attribute))
    return list.add_i(integer.getValue().getSExtValue()), true;
  if (auto number = llvm::dyn_cast<FloatAttr>(attribute))
    return list.add_f(number.getValue().convertToFloat()), true;
  if (auto type = llvm::dyn_cast<TypeAttr>(attribute))
    return list.add_type(getDataType(type.getValue())), true;
  if (auto shape = llvm::dyn_cast<dfg::TensorShapeAttr>(attribute))
    return exportShape(shape, *list.add_shape()), true;
  if (auto function = llvm::dyn_cast<dfg::FuncAttr>(attribute))
    return exportFunction(function, *list.add_func());
  if (auto elements = llvm::dyn_cast<ElementsAttr>(attribute))
    return exportTensor(elements, *list.add_tensor()), true;
  return false;
}

bool exportAttribute(Attribute attribute, AttrValue &value) {
  if (auto string = llvm::dyn_cast<StringAttr>(attribute))
    return value.set_s(string.getValue().str()), true;
  if (auto boolean = llvm::dyn_cast<BoolAttr>(attribute))
    return value.set_b(boolean.getValue()), true;
  if (auto integer = llvm::dyn_cast<IntegerAttr>(attribute))
    return value.set_i(integer.getValue().getSExtValue()), true;
  if (auto number = llvm::dyn_cast<FloatAttr>(attribute))
    return value.set_f(number.getValue().convertToFloat()), true;
  if (auto type = llvm::dyn_cast<TypeAttr>(attribute))
    return value.set_type(getDataType(type.getValue())), true;
  if (auto shape = llvm::dyn_cast<dfg::TensorShapeAttr>(attribute))
    return exportShape(shape, *value.mutable_shape()), true;
  if (auto function = llvm::dyn_cast<dfg::FuncAttr>(attribute))
    return exportFunction(function, *value.mutable_func());
  if (auto placeholder = llvm::dyn_cast<dfg::PlaceholderAttr>(attribute))
    return value.set_placeholder(placeholder.getName().str()), true;
  if (auto raw = llvm::dyn_cast<dfg::RawAttr>(attribute))
    return value.ParseFromString(raw.getBytes().getValue().str());
  if (auto elements = llvm::dyn_cast<ElementsAttr>(attribute))
    return exportTensor(elements, *value.mutable_tensor()), true;
  if (auto list = llvm::dyn_cast<ArrayAttr>(attribute)) {
    value.mutable_list();
    return llvm::all_of(list, [&](Attribute element) { return exportElement(element, *value.mutable_list()); });
  }
  return false;
}

} // namespace distc::tf

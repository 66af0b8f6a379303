//===- StockNodes.cpp - Makes nodes of stock TensorFlow ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/exchange/StockNodes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

StockNodes::StockNodes(Block &block) : builder(block.getParentOp()->getContext()) {
  for (Operation &op : block)
    if (llvm::StringRef name = dfg::getNodeName(&op); !name.empty())
      nodes.try_emplace(name, &op);
  builder.setInsertionPointToEnd(&block);
}

void StockNodes::setPlace(Operation *before, llvm::StringRef newScope) {
  builder.setInsertionPoint(before);
  scope = newScope.str();
}

void StockNodes::setPlaceAtEnd(llvm::StringRef newScope) {
  builder.setInsertionPointToEnd(builder.getInsertionBlock());
  scope = newScope.str();
}

std::string StockNodes::getUniqueName(llvm::StringRef name) const {
  std::string base = scope.empty() ? name.str() : name.empty() ? scope : scope + "/" + name.str(), unique = base;
  for (unsigned count = 1; nodes.contains(unique); ++count)
    unique = base + "_" + std::to_string(count);
  return unique;
}

Location StockNodes::locate(llvm::StringRef name) { return NameLoc::get(builder.getStringAttr(getUniqueName(name))); }

NamedAttribute StockNodes::types(llvm::StringRef name, ArrayRef<Type> values) {
  SmallVector<Attribute> list;
  for (Type type : values)
    list.push_back(TypeAttr::get(type));
  return attribute(name, builder.getArrayAttr(list));
}

Operation *StockNodes::make(llvm::StringRef op, llvm::StringRef name, ValueRange operands, TypeRange results,
                            ArrayRef<NamedAttribute> attributes) {
  auto node = dfg::OpaqueOp::create(builder, locate(name), results, op, operands);
  dfg::setSourceAttributes(node, attributes);
  return track(node);
}

Operation *StockNodes::group(llvm::StringRef name, ArrayRef<Operation *> waitsFor) {
  auto node = track(dfg::GroupOp::create(builder, locate(name)));
  addControl(node, waitsFor);
  return node;
}

Value StockNodes::constant(llvm::StringRef name, DenseElementsAttr value) {
  return track(dfg::ConstOp::create(builder, locate(name), value.getType(), value));
}
Value StockNodes::constant(llvm::StringRef name, int32_t value) {
  return constant(name, DenseElementsAttr::get(RankedTensorType::get({}, builder.getI32Type()), value));
}
Value StockNodes::constant(llvm::StringRef name, ArrayRef<int32_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI32Type());
  return constant(name, DenseElementsAttr::get(type, values));
}
Value StockNodes::scalar(llvm::StringRef name, double value, Value like) {
  auto type = llvm::cast<FloatType>(getElementTypeOrSelf(like.getType()));
  return constant(name, DenseElementsAttr::get(RankedTensorType::get({}, type), builder.getFloatAttr(type, value)));
}

Value StockNodes::handle(llvm::StringRef name, FlatSymbolRefAttr variable, Type type) {
  return track(dfg::VarHandleOp::create(builder, locate(name), type, variable));
}
Value StockNodes::read(llvm::StringRef name, Value handle, TensorType type) {
  return track(dfg::ReadVariableOp::create(builder, locate(name), type, handle));
}
Operation *StockNodes::assign(llvm::StringRef name, Value handle, Value value) {
  return track(dfg::AssignOp::create(builder, locate(name), /*updated=*/Type(), handle, value));
}
Value StockNodes::identity(llvm::StringRef name, Value value) {
  return track(dfg::IdentityOp::create(builder, locate(name), value.getType(), value));
}
Value StockNodes::addN(llvm::StringRef name, ArrayRef<Value> values) {
  return track(dfg::AddNOp::create(builder, locate(name), values.front().getType(), values));
}
Value StockNodes::multiply(llvm::StringRef name, Value value, double factor) {
  Value scale = scalar((name + "/factor").str(), factor, value);
  return track(dfg::MulOp::create(builder, locate(name), value.getType(), value, scale));
}
Value StockNodes::binary(llvm::StringRef op, llvm::StringRef name, Value x, Value y) {
  return get(op, name, {x, y}, x.getType(), attribute("T", getElementTypeOrSelf(x.getType())));
}
Value StockNodes::cast(llvm::StringRef name, Value value, Type elementType) {
  auto type = llvm::cast<TensorType>(value.getType()).clone(elementType);
  return track(dfg::CastOp::create(builder, locate(name), type, value));
}
Value StockNodes::reshape(llvm::StringRef name, Value value, ArrayRef<int64_t> shape) {
  SmallVector<int32_t> sizes(shape.begin(), shape.end());
  Value wanted = constant((name + "/shape").str(), ArrayRef<int32_t>(sizes));
  SmallVector<int64_t> known;
  for (int64_t size : shape)
    known.push_back(size < 0 ? ShapedType::kDynamic : size);
  auto type = RankedTensorType::get(known, getElementTypeOrSelf(value.getType()));
  return track(dfg::ReshapeOp::create(builder, locate(name), type, value, wanted));
}
Value StockNodes::concat(llvm::StringRef name, ArrayRef<Value> values) {
  if (values.size() == 1)
    return values.front();
  auto type = llvm::dyn_cast<RankedTensorType>(values.front().getType());
  Type result = UnrankedTensorType::get(getElementTypeOrSelf(values.front().getType()));
  if (type) {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 0;
    for (Value value : values) {
      auto part = llvm::dyn_cast<RankedTensorType>(value.getType());
      bool known = part && !part.isDynamicDim(0) && !ShapedType::isDynamic(shape[0]);
      shape[0] = known ? shape[0] + part.getDimSize(0) : ShapedType::kDynamic;
    }
    result = RankedTensorType::get(shape, type.getElementType());
  }
  Value axis = constant((name + "/axis").str(), 0);
  return track(dfg::ConcatV2Op::create(builder, locate(name), result, values, axis));
}
Value StockNodes::pack(llvm::StringRef name, ArrayRef<Value> values) {
  Type result = UnrankedTensorType::get(getElementTypeOrSelf(values.front().getType()));
  if (auto type = llvm::dyn_cast<RankedTensorType>(values.front().getType())) {
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), values.size());
    result = RankedTensorType::get(shape, type.getElementType());
  }
  return track(dfg::PackOp::create(builder, locate(name), result, values));
}

bool StockNodes::hasStaticShape(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape();
}
int64_t StockNodes::count(Value value) { return llvm::cast<RankedTensorType>(value.getType()).getNumElements(); }

Value StockNodes::flatten(ArrayRef<Value> values) {
  SmallVector<Value> flat;
  for (Value value : values)
    flat.push_back(reshape("flat", value, {count(value)}));
  return concat("packed", flat);
}

SmallVector<Value> StockNodes::unflatten(Value flat, ArrayRef<Value> like) {
  SmallVector<Value> parts = {flat};
  Type element = getElementTypeOrSelf(flat.getType());
  if (like.size() > 1) {
    SmallVector<int32_t> sizes;
    SmallVector<Type> types;
    for (Value value : like) {
      sizes.push_back(static_cast<int32_t>(count(value)));
      types.push_back(RankedTensorType::get({count(value)}, element));
    }
    Value lengths = constant("unpacked/sizes", ArrayRef<int32_t>(sizes)), axis = constant("unpacked/axis", 0);
    Operation *split = make("SplitV", "unpacked", {flat, lengths, axis}, types,
                            {attribute("T", element), attribute("Tlen", builder.getI32Type()),
                             attribute("num_split", static_cast<int64_t>(like.size()))});
    parts.assign(split->result_begin(), split->result_end());
  }
  SmallVector<Value> values;
  for (auto [part, value] : llvm::zip(parts, like))
    values.push_back(reshape("reduced", part, llvm::cast<RankedTensorType>(value.getType()).getShape()));
  return values;
}

void StockNodes::forget(Operation *op) {
  auto it = nodes.find(dfg::getNodeName(op));
  if (it != nodes.end() && it->second == op)
    nodes.erase(it);
}

void StockNodes::rename(Operation *op, llvm::StringRef name) {
  forget(op);
  op->setLoc(NameLoc::get(builder.getStringAttr(name)));
  nodes[name] = op;
}

void StockNodes::addControl(Operation *op, ArrayRef<Operation *> others) {
  Builder builder(op->getContext());
  llvm::SetVector<Attribute> names;
  if (auto old = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr))
    names.insert(old.begin(), old.end());
  for (Operation *other : others)
    names.insert(builder.getStringAttr(dfg::getNodeName(other)));
  if (!names.empty())
    op->setAttr(dfg::kControlAttr, builder.getArrayAttr(names.getArrayRef()));
}

} // namespace distc

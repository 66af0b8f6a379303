//===- ShapeContext.cpp - What is known of shapes, the batch symbolic -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ShapeContext.h"
#include "dialects/dfg/Dfg.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc::dfg {

Dim operator+(Dim x, Dim y) {
  if (!x.known || !y.known)
    return {};
  return Dim::batch(x.scale + y.scale, x.offset + y.offset).with(x).with(y);
}

Dim operator-(Dim x, Dim y) {
  if (!x.known || !y.known)
    return {};
  return Dim::batch(x.scale - y.scale, x.offset - y.offset).with(x).with(y);
}

Dim operator*(Dim x, Dim y) {
  // Zero times anything is zero, also where the other size is unknown.
  if ((x.isConstant() && x.offset == 0) || (y.isConstant() && y.offset == 0))
    return 0;
  if (!x.known || !y.known || (x.scale && y.scale))
    return {};
  if (y.scale)
    std::swap(x, y);
  return Dim::batch(x.scale * y.offset, x.offset * y.offset).with(x).with(y);
}

Dim floorDiv(Dim x, Dim y) {
  if (!x.known || !y.known)
    return {};
  if (y.isConstant()) {
    if (y.offset == 0)
      return {};
    if (x.isConstant())
      return Dim(llvm::divideFloorSigned(x.offset, y.offset)).with(x).with(y);
    if (x.scale % y.offset == 0 && x.offset % y.offset == 0)
      return Dim::batch(x.scale / y.offset, x.offset / y.offset).with(x).with(y);
    return {};
  }
  // Proportional sizes: (q s b + q o) / (s b + o) = q.
  int64_t quotient = x.scale / y.scale;
  if (quotient * y.scale == x.scale && quotient * y.offset == x.offset)
    return Dim(quotient).with(x).with(y);
  return {};
}

Dim floorMod(Dim x, Dim y) {
  Dim quotient = floorDiv(x, y);
  return x - quotient * y;
}

/// The sign of x - y for every b >= 1, where it is the same for all: -1, 0 or 1.
static std::optional<int> compare(Dim x, Dim y) {
  Dim difference = x - y;
  if (!difference.isKnown())
    return std::nullopt;
  int64_t atOne = difference.at(1), slope = difference.getScale();
  if (slope == 0)
    return atOne > 0 ? 1 : atOne < 0 ? -1 : 0;
  if (slope > 0 && atOne >= 0)
    return 1;
  if (slope < 0 && atOne <= 0)
    return -1;
  return std::nullopt;
}

Dim max(Dim x, Dim y) {
  std::optional<int> order = compare(x, y);
  return !order ? Dim() : *order >= 0 ? x.with(y) : y.with(x);
}

Dim min(Dim x, Dim y) {
  std::optional<int> order = compare(x, y);
  return !order ? Dim() : *order <= 0 ? x.with(y) : y.with(x);
}

std::optional<Dims> ShapeContext::getShape(Value value) const {
  if (auto it = shapes.find(value); it != shapes.end())
    return it->second;
  // A handle's is its variable's.
  auto ref = llvm::dyn_cast<RefType>(value.getType());
  auto type = llvm::dyn_cast<RankedTensorType>(ref ? ref.getValueType() : value.getType());
  if (!type)
    return std::nullopt;
  Dims sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
  return sizes;
}

std::optional<Dims> ShapeContext::getElements(Value value) const {
  if (auto it = elements.find(value); it != elements.end())
    return it->second;
  return std::nullopt;
}

std::optional<int64_t> ShapeContext::getConstant(Value value) const {
  std::optional<SmallVector<int64_t>> all = getConstants(value);
  if (!all || all->size() != 1)
    return std::nullopt;
  return all->front();
}

std::optional<SmallVector<int64_t>> ShapeContext::getConstants(Value value) const {
  std::optional<Dims> known = getElements(value);
  if (!known)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (Dim element : *known) {
    if (!element.isConstant())
      return std::nullopt;
    result.push_back(element.getConstant());
  }
  return result;
}

void ShapeContext::setElements(Value value, Dims known) {
  if (static_cast<int64_t>(known.size()) <= kMaxElements)
    elements[value] = std::move(known);
}

LogicalResult ShapeContext::run(Block &block) {
  for (Operation &op : block) {
    if (auto node = llvm::dyn_cast<ShapeInterface>(op))
      if (failed(node.inferShapes(*this)))
        return failure();
    if (bounds && failed(checkBounds(&op)))
      return failure();
  }
  return success();
}

TensorType getTensorType(ArrayRef<Dim> sizes, Type elementType) {
  SmallVector<int64_t> extents;
  for (Dim size : sizes)
    extents.push_back(size.isConstant() ? size.getConstant() : ShapedType::kDynamic);
  return RankedTensorType::get(extents, elementType);
}

} // namespace distc::dfg

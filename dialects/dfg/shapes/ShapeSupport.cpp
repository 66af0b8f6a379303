//===- ShapeSupport.cpp - What shape functions share ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/shapes/ShapeSupport.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::shapes {

std::string print(ArrayRef<Dim> sizes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(sizes, os, [&](Dim size) {
    if (!size.isKnown())
      os << "?";
    else if (size.isConstant())
      os << size.getConstant();
    else if (size.dependsOnWholeBatch())
      os << size.getScale() << "b+" << size.getWholeScale() << "B+" << size.getOffset();
    else
      os << size.getScale() << "b+" << size.getOffset();
  });
  os << "]";
  return text;
}

bool isInteger(Value value) {
  auto type = llvm::dyn_cast<TensorType>(value.getType());
  return type && type.getElementType().isInteger();
}

FailureOr<int64_t> normalizeAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return op->emitOpError() << "axis " << axis << " is outside of a tensor of rank " << rank;
  return axis < 0 ? axis + rank : axis;
}

bool fits(Dim x, Dim y) { return !x.isConstant() || !y.isConstant() || x == y; }
bool fits(ArrayRef<Dim> x, ArrayRef<Dim> y) {
  return x.size() == y.size() &&
         llvm::all_of(llvm::zip(x, y), [](auto both) { return fits(std::get<0>(both), std::get<1>(both)); });
}

LogicalResult checkScalar(Operation *op, ShapeContext &context, unsigned operand, bool orOne) {
  auto shape = context.getShape(op->getOperand(operand));
  if (!shape || shape->empty() || (orOne && llvm::all_of(*shape, [](Dim size) { return fits(size, 1); })))
    return success();
  return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape)
                           << ", which must be a scalar";
}

FailureOr<std::optional<Dims>> getSizes(Operation *op, ShapeContext &context, unsigned operand) {
  auto shape = context.getShape(op->getOperand(operand));
  if (shape && shape->size() != 1)
    return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape)
                             << ", which must be a vector of sizes";
  std::optional<Dims> sizes = context.getElements(op->getOperand(operand));
  if (sizes && failed(checkSizes(op, *sizes)))
    return failure();
  return sizes;
}

Dim product(ArrayRef<Dim> sizes) {
  Dim result = 1;
  for (Dim size : sizes)
    result = result * size;
  return result;
}

/// The size of two broadcast axes; fails where both are constants other than 1 and differ.
static std::optional<Dim> broadcastSize(Dim x, Dim y) {
  if (x.isConstant() && x.getConstant() == 1)
    return y.with(x);
  if (y.isConstant() && y.getConstant() == 1)
    return x.with(y);
  if (x.isConstant() && y.isConstant())
    return x == y ? std::optional<Dim>(x.with(y)) : std::nullopt;
  // An unknown size broadcasts against a known one other than 1: it is that, or 1.
  if (x.isKnown() && y.isKnown())
    return x == y ? x.with(y) : Dim();
  return x.isKnown() ? x : y;
}

FailureOr<Dims> broadcastShapes(Operation *op, ArrayRef<Dim> x, ArrayRef<Dim> y) {
  if (x.size() < y.size())
    std::swap(x, y);
  Dims result(x.begin(), x.end());
  size_t lead = x.size() - y.size();
  for (size_t i = 0; i < y.size(); ++i) {
    std::optional<Dim> size = broadcastSize(x[lead + i], y[i]);
    if (!size)
      return op->emitOpError() << "operands of shapes " << print(x) << " and " << print(y) << " do not broadcast";
    result[lead + i] = *size;
  }
  return result;
}

} // namespace distc::dfg::shapes

//===- ReductionShapes.cpp - Shapes of reductions and products -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult oneHot(Operation *op, ShapeContext &context) {
  auto indices = context.getShape(op->getOperand(0));
  auto depth = context.getElements(op->getOperand(1));
  for (unsigned operand : {1, 2, 3})
    if (failed(checkScalar(op, context, operand)))
      return failure();
  if (!indices)
    return success();
  int64_t axis = llvm::cast<OneHotOp>(op).getAxisAttr().getInt();
  FailureOr<int64_t> at = normalizeAxis(op, axis, indices->size() + 1);
  if (failed(at))
    return failure();
  indices->insert(indices->begin() + *at, depth && depth->size() == 1 ? depth->front() : Dim());
  context.setShape(op->getResult(0), *indices);
  return success();
}

/// The input's sizes without (or with 1 for) those reduced over.
static LogicalResult reduceShape(Operation *op, ShapeContext &context, std::optional<SmallVector<int64_t>> axes,
                                 bool keep) {
  auto input = context.getShape(op->getOperand(0));
  if (!input || !axes)
    return success();
  SmallVector<bool> reduced(input->size(), false);
  for (int64_t axis : *axes) {
    FailureOr<int64_t> along = normalizeAxis(op, axis, input->size());
    if (failed(along))
      return failure();
    reduced[*along] = true;
  }
  Dims sizes;
  for (auto [size, gone] : llvm::zip(*input, reduced)) {
    if (!gone)
      sizes.push_back(size);
    else if (keep)
      sizes.push_back(1);
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

/// The largest or smallest of a vector of sizes, which is one where it is so for every batch; whether all or any of
/// conditions on sizes hold.
LogicalResult extremum(Operation *op, ShapeContext &context) {
  auto elements = context.getElements(op->getOperand(0));
  auto shape = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  const bool isLargest = llvm::isa<MaxOp, AnyOp>(op);
  if (elements && !elements->empty() && shape && shape->size() == 1 && axes && axes->size() == 1 &&
      isInteger(op->getResult(0))) {
    Dim found = elements->front();
    for (Dim next : ArrayRef<Dim>(*elements).drop_front())
      found = isLargest ? max(found, next) : min(found, next);
    context.setElements(op->getResult(0), {found});
  }
  return reduction(op, context);
}

LogicalResult reduction(Operation *op, ShapeContext &context) {
  bool keep = op->getAttrOfType<BoolAttr>("keep_dims") && op->getAttrOfType<BoolAttr>("keep_dims").getValue();
  return reduceShape(op, context, context.getConstants(op->getOperand(1)), keep);
}

LogicalResult prod(Operation *op, ShapeContext &context) {
  auto elements = context.getElements(op->getOperand(0));
  auto shape = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  // A scalar, or a vector over its axis; over no axis the value stays.
  if (elements && shape && axes && isInteger(op->getResult(0))) {
    if (axes->empty())
      context.setElements(op->getResult(0), *elements);
    else if (shape->size() == 1)
      context.setElements(op->getResult(0), {product(*elements)});
  }
  return reduction(op, context);
}

LogicalResult argReduction(Operation *op, ShapeContext &context) {
  auto axis = context.getConstants(op->getOperand(1));
  return reduceShape(op, context, axis, false);
}

static LogicalResult multiply(Operation *op, ShapeContext &context, bool transposeA, bool transposeB) {
  auto a = context.getShape(op->getOperand(0)), b = context.getShape(op->getOperand(1));
  if (!a || !b)
    return success();
  if (a->size() < 2 || b->size() < 2)
    return op->emitOpError() << "multiplies shapes " << print(*a) << " and " << print(*b) << "; matrices are needed";
  auto at = [](const Dims &sizes, int64_t fromBack) { return sizes[sizes.size() - fromBack]; };
  Dim rows = at(*a, transposeA ? 1 : 2), innerA = at(*a, transposeA ? 2 : 1);
  Dim innerB = at(*b, transposeB ? 1 : 2), columns = at(*b, transposeB ? 2 : 1);
  if (innerA.isConstant() && innerB.isConstant() && !(innerA == innerB))
    return op->emitOpError() << "multiplies shapes " << print(*a) << " and " << print(*b) << ": "
                             << innerA.getConstant() << " columns meet " << innerB.getConstant() << " rows";
  FailureOr<Dims> sizes = broadcastShapes(op, ArrayRef(*a).drop_back(2), ArrayRef(*b).drop_back(2));
  if (failed(sizes))
    return failure();
  sizes->push_back(rows);
  sizes->push_back(columns);
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult matMul(Operation *op, ShapeContext &context) {
  auto product = llvm::cast<MatMulOp>(op);
  for (Value operand : op->getOperands())
    if (auto shape = context.getShape(operand); shape && shape->size() != 2)
      return op->emitOpError() << "multiplies a tensor of shape " << print(*shape) << "; matrices are needed";
  return multiply(op, context, product.getTransposeA(), product.getTransposeB());
}

LogicalResult batchMatMul(Operation *op, ShapeContext &context) {
  auto flag = [&](StringRef name) {
    auto attr = op->getAttrOfType<BoolAttr>(name);
    return attr && attr.getValue();
  };
  return multiply(op, context, flag("adj_x"), flag("adj_y"));
}

} // namespace distc::dfg::shapes

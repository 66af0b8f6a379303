//===- LinalgShapes.cpp - Shapes of sorting, linear algebra, candidates --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/ShapeFunctions.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult nothing(Operation *, ShapeContext &) { return success(); }

LogicalResult bitcast(Operation *op, ShapeContext &context) {
  auto widthOf = [](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  };
  // Elements of another width are joined or cut along a last axis.
  unsigned from = widthOf(op->getOperand(0)), to = widthOf(op->getResult(0));
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes || !from || !to)
    return success();
  if (from > to)
    sizes->push_back(from / to);
  else if (from < to && (sizes->empty() || !fits(sizes->back(), Dim(to / from))))
    return op->emitOpError() << "takes elements of " << from << " bits in shape " << print(*sizes) << " for ones of "
                             << to;
  else if (from < to)
    sizes->pop_back();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult topK(Operation *op, ShapeContext &context) {
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes)
    return success();
  if (sizes->empty())
    return op->emitOpError("needs a tensor with an axis, not a scalar");
  Dim k;
  if (auto attribute = op->getAttrOfType<IntegerAttr>("k"))
    k = attribute.getInt();
  else if (auto elements = context.getElements(op->getOperand(1)); elements && elements->size() == 1)
    k = elements->front();
  if (k.isConstant() &&
      (k.getConstant() < 0 || (sizes->back().isConstant() && k.getConstant() > sizes->back().getConstant())))
    return op->emitOpError() << "asks for the " << k.getConstant() << " largest along the last axis of shape "
                             << print(*sizes);
  sizes->back() = k;
  context.setShape(op->getResult(0), *sizes);
  context.setShape(op->getResult(1), *sizes);
  return success();
}

/// The sizes of an operand that has matrices along its last two axes; none where they are not known.
static FailureOr<std::optional<Dims>> getMatrices(Operation *op, ShapeContext &context, unsigned operand,
                                                  bool areSquare) {
  auto sizes = context.getShape(op->getOperand(operand));
  if (sizes && (sizes->size() < 2 || (areSquare && !fits((*sizes)[sizes->size() - 2], sizes->back()))))
    return op->emitOpError() << "takes " << (areSquare ? "square " : "") << "matrices, not a tensor of shape "
                             << print(*sizes);
  return sizes;
}

LogicalResult squareMatrices(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, true);
  if (failed(sizes))
    return failure();
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult determinant(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, true);
  if (failed(sizes))
    return failure();
  if (*sizes)
    for (Value result : op->getResults())
      context.setShape(result, Dims((*sizes)->begin(), (*sizes)->end() - 2));
  return success();
}

LogicalResult solve(Operation *op, ShapeContext &context) {
  auto matrices = getMatrices(op, context, 0, true), sides = getMatrices(op, context, 1, false);
  if (failed(matrices) || failed(sides))
    return failure();
  if (!*matrices || !*sides)
    return success();
  if ((*matrices)->size() != (*sides)->size() || !fits(ArrayRef(**matrices).drop_back(), ArrayRef(**sides).drop_back()))
    return op->emitOpError() << "solves for sides of shape " << print(**sides) << " by matrices of shape "
                             << print(**matrices);
  context.setShape(op->getResult(0), **sides);
  return success();
}

LogicalResult qr(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, false);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  Dims q = **sizes, r = **sizes;
  Dim rows = q[q.size() - 2], columns = q.back();
  bool full = llvm::cast<QrOp>(op).getFullMatrices();
  q.back() = full ? rows : min(rows, columns);
  r[r.size() - 2] = q.back();
  context.setShape(op->getResult(0), std::move(q));
  context.setShape(op->getResult(1), std::move(r));
  return success();
}

LogicalResult ctcLossRows(Operation *op, ShapeContext &context) {
  auto inputs = context.getShape(op->getOperand(0)), labels = context.getShape(op->getOperand(1));
  if (inputs && inputs->size() != 3)
    return op->emitOpError() << "takes inputs of shape " << print(*inputs) << ": [example, step, class]";
  if (labels && (labels->size() != 2 || (inputs && !fits(labels->front(), inputs->front()))))
    return op->emitOpError() << "takes labels of shape " << print(*labels) << ": a row an example";
  if (!inputs)
    return success();
  context.setShape(op->getResult(0), {inputs->front()});
  context.setShape(op->getResult(1), std::move(*inputs));
  return success();
}

LogicalResult candidates(Operation *op, ShapeContext &context) {
  Dim sampled = op->getAttrOfType<IntegerAttr>("num_sampled").getInt();
  int64_t classes = op->getAttrOfType<IntegerAttr>("num_true").getInt();
  auto trueClasses = context.getShape(op->getOperand(0));
  if (trueClasses && (trueClasses->size() != 2 || !fits(trueClasses->back(), Dim(classes))))
    return op->emitOpError() << "takes true classes of shape " << print(*trueClasses) << ", " << classes << " a row";
  if (op->getAttrOfType<BoolAttr>("unique").getValue() &&
      op->getAttrOfType<IntegerAttr>("range_max").getInt() < sampled.getConstant())
    return op->emitOpError() << "draws " << sampled.getConstant() << " distinct candidates of "
                             << op->getAttrOfType<IntegerAttr>("range_max").getInt();
  context.setShape(op->getResult(0), {sampled});
  if (trueClasses)
    context.setShape(op->getResult(1), *trueClasses);
  context.setShape(op->getResult(2), {sampled});
  return success();
}

LogicalResult accidentalHits(Operation *op, ShapeContext &context) {
  auto trueClasses = context.getShape(op->getOperand(0)), sampled = context.getShape(op->getOperand(1));
  if (!trueClasses || !sampled || trueClasses->size() != 2 || sampled->size() != 1)
    return success();
  Dim most = (*trueClasses)[0] * (*trueClasses)[1];
  // Distinct candidates are one true class each at most.
  Operation *sampler = op->getOperand(1).getDefiningOp();
  while (llvm::isa_and_nonnull<IdentityOp, StopGradientOp>(sampler))
    sampler = sampler->getOperand(0).getDefiningOp();
  auto unique = sampler ? sampler->getAttrOfType<BoolAttr>("unique") : BoolAttr();
  if (!unique || !unique.getValue())
    most = most * (*sampled)[0];
  Dim hits = context.getBoundedSize(most);
  for (Value result : op->getResults())
    context.setShape(result, {hits});
  return success();
}

} // namespace distc::dfg::shapes

//===- SizeShapes.cpp - Sizes as values: shapes of shapes, ranges, permutations ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult shapeOf(Operation *op, ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
    if (auto shape = context.getShape(operand)) {
      context.setShape(result, {Dim(shape->size())});
      context.setElements(result, *shape);
    }
  return success();
}

LogicalResult sizeOf(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {});
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setElements(op->getResult(0), {product(*shape)});
  return success();
}

LogicalResult rankOf(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {});
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setElements(op->getResult(0), {Dim(shape->size())});
  return success();
}

LogicalResult broadcastGradientArgs(Operation *op, ShapeContext &context) {
  auto x = context.getElements(op->getOperand(0)), y = context.getElements(op->getOperand(1));
  if (!x || !y)
    return success();
  size_t rank = std::max(x->size(), y->size());
  auto sizeAt = [&](const Dims &sizes, size_t axis) {
    return axis < rank - sizes.size() ? Dim(1) : sizes[axis - (rank - sizes.size())];
  };
  auto isOne = [](Dim size) { return size.isConstant() && size.getConstant() == 1; };
  Dims reduceX, reduceY;
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim sizeX = sizeAt(*x, axis), sizeY = sizeAt(*y, axis);
    if (!sizeX.isKnown() || !sizeY.isKnown())
      return success();
    // Both 1: TensorFlow reduces over the axis in both; to the same result.
    if (isOne(sizeX))
      reduceX.push_back(axis);
    if (isOne(sizeY))
      reduceY.push_back(axis);
  }
  // Equal shapes need no reduction at all.
  if (*x == *y)
    reduceX.clear(), reduceY.clear();
  context.setShape(op->getResult(0), {Dim(reduceX.size())});
  context.setShape(op->getResult(1), {Dim(reduceY.size())});
  context.setElements(op->getResult(0), reduceX);
  context.setElements(op->getResult(1), reduceY);
  return success();
}

LogicalResult invertPermutation(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  auto permutation = context.getConstants(op->getOperand(0));
  if (!permutation)
    return success();
  Dims inverse(permutation->size());
  for (auto [position, axis] : llvm::enumerate(*permutation)) {
    if (axis < 0 || axis >= static_cast<int64_t>(permutation->size()) || inverse[axis].isKnown())
      return op->emitOpError() << axis << " is not an axis of a permutation of " << permutation->size();
    inverse[axis] = position;
  }
  context.setElements(op->getResult(0), std::move(inverse));
  return success();
}

LogicalResult concatOffset(Operation *op, ShapeContext &context) {
  auto axis = context.getConstant(op->getOperand(0));
  Dim offset = 0;
  std::optional<size_t> rank;
  for (auto [shape, result] : llvm::zip(op->getOperands().drop_front(), op->getResults())) {
    auto sizes = context.getElements(shape);
    if (!axis || !sizes)
      return success();
    if (rank.value_or(sizes->size()) != sizes->size())
      return op->emitOpError() << "joins shapes of " << *rank << " and of " << sizes->size() << " axes";
    rank = sizes->size();
    FailureOr<int64_t> along = normalizeAxis(op, *axis, sizes->size());
    if (failed(along))
      return failure();
    Dims start(sizes->size(), Dim(0));
    start[*along] = offset;
    context.setShape(result, {Dim(sizes->size())});
    context.setElements(result, std::move(start));
    offset = offset + (*sizes)[*along];
  }
  return success();
}

LogicalResult listDiff(Operation *op, ShapeContext &context) {
  auto all = context.getConstants(op->getOperand(0)), without = context.getConstants(op->getOperand(1));
  if (!all || !without) {
    for (Value result : op->getResults())
      context.setShape(result, {Dim()});
    return success();
  }
  Dims kept, positions;
  for (auto [position, element] : llvm::enumerate(*all))
    if (!llvm::is_contained(*without, element)) {
      kept.push_back(element);
      positions.push_back(position);
    }
  for (Value result : op->getResults())
    context.setShape(result, {Dim(kept.size())});
  context.setElements(op->getResult(0), std::move(kept));
  context.setElements(op->getResult(1), std::move(positions));
  return success();
}

LogicalResult dynamicStitch(Operation *op, ShapeContext &context) {
  unsigned count = op->getNumOperands() / 2;
  if (count == 0)
    return success();
  auto firstIndices = context.getShape(op->getOperand(0)), firstData = context.getShape(op->getOperand(count));
  if (!firstIndices || !firstData || firstData->size() < firstIndices->size())
    return success();
  // Behind the indices' axes, the data's are the result's. Later rows win.
  Dims sizes = {Dim()};
  sizes.append(firstData->begin() + firstIndices->size(), firstData->end());
  Dims elements;
  bool known = sizes.size() == 1;
  for (unsigned i = 0; i < count; ++i) {
    auto indices = context.getConstants(op->getOperand(i));
    if (!indices) {
      context.setShape(op->getResult(0), std::move(sizes));
      return success();
    }
    auto data = context.getElements(op->getOperand(count + i));
    known &= data && data->size() == indices->size();
    if (auto shape = context.getShape(op->getOperand(count + i)), at = context.getShape(op->getOperand(i));
        shape && at &&
        (shape->size() < at->size() || !fits(ArrayRef(*shape).take_front(at->size()), *at) ||
         !fits(ArrayRef(*shape).drop_front(at->size()), ArrayRef(sizes).drop_front())))
      return op->emitOpError() << "puts rows of shape " << print(*shape) << " at indices of shape " << print(*at)
                               << " beside shape " << print(*firstData);
    for (auto [from, to] : llvm::enumerate(*indices)) {
      if (to < 0 || to >= ShapeContext::kMaxElements)
        return op->emitOpError() << "puts a row at " << to << ", outside of [0, " << ShapeContext::kMaxElements << ")";
      if (to >= static_cast<int64_t>(elements.size()))
        elements.resize(to + 1);
      if (known)
        elements[to] = (*data)[from];
    }
  }
  sizes[0] = Dim(elements.size());
  context.setShape(op->getResult(0), std::move(sizes));
  if (known && isInteger(op->getResult(0)))
    context.setElements(op->getResult(0), std::move(elements));
  return success();
}

/// A range of floats, of constants: as TensorFlow counts them.
static std::optional<int64_t> countFloats(Operation *op, const ShapeContext &context) {
  double bounds[3];
  for (auto [bound, operand] : llvm::zip(bounds, op->getOperands())) {
    std::optional<SmallVector<double>> value = context.getReals(operand);
    if (!value || value->size() != 1)
      return std::nullopt;
    bound = value->front();
  }
  const double count = std::ceil(std::abs((bounds[1] - bounds[0]) / bounds[2]));
  const bool isForward = bounds[2] > 0 ? bounds[0] <= bounds[1] : bounds[0] >= bounds[1];
  return isForward && count <= static_cast<double>(std::numeric_limits<int32_t>::max())
             ? std::optional(static_cast<int64_t>(count))
             : std::nullopt;
}

LogicalResult range(Operation *op, ShapeContext &context) {
  if (auto count = countFloats(op, context)) {
    context.setShape(op->getResult(0), {*count});
    return success();
  }
  auto start = context.getElements(op->getOperand(0)), limit = context.getElements(op->getOperand(1));
  auto delta = context.getConstant(op->getOperand(2));
  // The first element of each of so many rows, which are as long as the batch says (the gradient of top_k): of one row,
  // one.
  if (auto step = context.getElements(op->getOperand(2));
      start && limit && !delta && step && step->size() == 1 && start->size() == 1 && limit->size() == 1) {
    const Dim length = step->front();
    if ((*start)[0] == Dim(0) && (*limit)[0] == length && length.isKnown() && !length.isBound() &&
        length.getSmallest() > 0) {
      context.setShape(op->getResult(0), {Dim(1)});
      return success();
    }
  }
  if (!start || !limit || !delta) {
    context.setShape(op->getResult(0), {Dim()});
    return success();
  }
  if (start->size() != 1 || limit->size() != 1)
    return op->emitOpError("takes bounds that are no scalars");
  if (*delta == 0)
    return op->emitOpError("counts in steps of 0");
  Dim span = *delta > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  if (*delta == std::numeric_limits<int64_t>::min())
    return op->emitOpError("counts in steps that are too long");
  int64_t step = std::abs(*delta);
  Dim count = step == 1 ? max(span, 0) : floorDiv(max(span, 0) + Dim(step - 1), step);
  context.setShape(op->getResult(0), {count});
  if (count.isConstant() && (*start)[0].isConstant() && count.getConstant() <= ShapeContext::kMaxElements) {
    Dims elements;
    for (int64_t i = 0; i < count.getConstant(); ++i)
      elements.push_back((*start)[0].getConstant() + i * *delta);
    context.setElements(op->getResult(0), std::move(elements));
  }
  return success();
}

LogicalResult keyCounter(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {Dim(1)});
  context.setShape(op->getResult(1), {Dim(2)});
  return success();
}

LogicalResult permutation(Operation *op, ShapeContext &context) {
  auto count = context.getElements(op->getOperand(0));
  if (count && (count->size() != 1 || failed(checkSizes(op, *count))))
    return op->emitOpError("takes how many there are as a scalar");
  context.setShape(op->getResult(0), {count ? count->front() : Dim()});
  return success();
}

LogicalResult fromSizes(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (succeeded(sizes) && *sizes)
    context.setShape(op->getResult(0), **sizes);
  return success(succeeded(sizes));
}

} // namespace distc::dfg::shapes

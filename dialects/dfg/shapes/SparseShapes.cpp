//===- SparseShapes.cpp - Shapes of what takes and gives rows by index ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult gather(Operation *op, ShapeContext &context) {
  auto params = context.getShape(op->getOperand(0)), indices = context.getShape(op->getOperand(1));
  auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
  int64_t lead = batchDims ? batchDims.getInt() : 0;
  if (indices && lead < 0)
    lead += indices->size();
  // A gather without axis takes it behind the axes that params and indices share.
  auto axis = op->getNumOperands() > 2 ? context.getConstant(op->getOperand(2)) : std::optional<int64_t>(lead);
  if (!params || !indices || !axis)
    return success();
  FailureOr<int64_t> along = normalizeAxis(op, *axis, params->size());
  if (failed(along))
    return failure();
  if (lead < 0 || lead > *along || lead > static_cast<int64_t>(indices->size()))
    return op->emitOpError() << "shares " << lead << " axes of indices of shape " << print(*indices)
                             << " and gathers along axis " << *along;
  if (!fits(ArrayRef(*params).take_front(lead), ArrayRef(*indices).take_front(lead)))
    return op->emitOpError() << "takes indices of shape " << print(*indices) << " into shape " << print(*params)
                             << ", which share " << lead << " axes";
  Dims sizes(params->begin(), params->begin() + *along);
  sizes.append(indices->begin() + lead, indices->end());
  sizes.append(params->begin() + *along + 1, params->end());
  auto elements = context.getElements(op->getOperand(0));
  auto at = context.getConstants(op->getOperand(1));
  if (elements && at && params->size() == 1) {
    Dims taken;
    for (int64_t index : *at) {
      if (index < 0 || index >= static_cast<int64_t>(elements->size()))
        return op->emitOpError() << "index " << index << " is outside of a vector of " << elements->size();
      taken.push_back((*elements)[index]);
    }
    context.setElements(op->getResult(0), std::move(taken));
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

/// How many axes an index of `indices` names; none where it is not known.
static std::optional<size_t> getIndexDepth(const Dims &indices) {
  if (indices.empty() || !indices.back().isConstant() || indices.back().getConstant() < 0)
    return std::nullopt;
  return indices.back().getConstant();
}

LogicalResult gatherNd(Operation *op, ShapeContext &context) {
  auto params = context.getShape(op->getOperand(0)), indices = context.getShape(op->getOperand(1));
  auto depth = indices ? getIndexDepth(*indices) : std::nullopt;
  if (!params || !depth)
    return success();
  if (*depth > params->size())
    return op->emitOpError() << "has indices of " << *depth << " numbers into shape " << print(*params);
  Dims sizes(indices->begin(), indices->end() - 1);
  sizes.append(params->begin() + *depth, params->end());
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult unique(Operation *op, ShapeContext &context) {
  auto x = context.getShape(op->getOperand(0));
  if (!x)
    return success();
  int64_t axis = 0;
  if (op->getNumOperands() > 1) {
    auto given = context.getShape(op->getOperand(1));
    auto constants = context.getConstants(op->getOperand(1));
    if (!given || (!constants && !(given->size() == 1 && (*given)[0] == Dim(0))))
      return success();
    axis = constants && !constants->empty() ? constants->front() : 0;
  }
  if (x->empty())
    return op->emitOpError() << "needs a tensor with an axis, not a scalar";
  FailureOr<int64_t> along = normalizeAxis(op, axis, x->size());
  if (failed(along))
    return failure();
  Dim all = (*x)[*along], distinct = context.getBoundedSize(all);
  Dims sizes = *x;
  sizes[*along] = distinct;
  context.setShape(op->getResult(0), std::move(sizes));
  context.setShape(op->getResult(1), {all});
  if (op->getNumResults() > 2)
    context.setShape(op->getResult(2), {distinct});
  return success();
}

/// The elements of a sum of known numbers by segment: an inverted permutation of axes is one.
static void addSegments(Operation *op, ShapeContext &context) {
  auto data = context.getElements(op->getOperand(0));
  auto ids = context.getConstants(op->getOperand(1));
  auto count = context.getConstant(op->getOperand(2));
  if (!data || !ids || !count || data->size() != ids->size() || *count < 0 || *count > ShapeContext::kMaxElements)
    return;
  Dims sums(*count, Dim(0));
  for (auto [element, id] : llvm::zip(*data, *ids)) {
    if (id >= *count)
      return;
    if (id >= 0)
      sums[id] = sums[id] + element;
  }
  context.setElements(op->getResult(0), std::move(sums));
}

LogicalResult unsortedSegment(Operation *op, ShapeContext &context) {
  auto data = context.getShape(op->getOperand(0)), ids = context.getShape(op->getOperand(1));
  if (!data || !ids)
    return success();
  if (ids->size() > data->size() || !fits(*ids, ArrayRef(*data).take_front(ids->size())))
    return op->emitOpError() << "has segments of shape " << print(*ids) << " for data of shape " << print(*data);
  auto count = context.getElements(op->getOperand(2));
  Dims sizes = {count && count->size() == 1 ? count->front() : Dim()};
  sizes.append(data->begin() + ids->size(), data->end());
  context.setShape(op->getResult(0), std::move(sizes));
  if (op->hasTrait<SumsRows>() && data->size() == ids->size())
    addSegments(op, context);
  return success();
}

/// Fails with a diagnostic where `updates` are not the slices of shape `sizes` that `indices` name.
static LogicalResult checkSlices(Operation *op, ArrayRef<Dim> sizes, const std::optional<Dims> &indices,
                                 const std::optional<Dims> &updates) {
  auto depth = indices ? getIndexDepth(*indices) : std::nullopt;
  if (!depth || !updates)
    return success();
  if (*depth <= sizes.size()) {
    Dims slices(indices->begin(), indices->end() - 1);
    slices.append(sizes.begin() + *depth, sizes.end());
    if (fits(slices, *updates))
      return success();
  }
  return op->emitOpError() << "puts slices of shape " << print(*updates) << " at indices of shape " << print(*indices)
                           << " into shape " << print(sizes);
}

LogicalResult scatterNd(Operation *op, ShapeContext &context) {
  auto sizes = context.getElements(op->getOperand(2));
  if (!sizes)
    return success();
  if (failed(checkSizes(op, *sizes)) ||
      failed(checkSlices(op, *sizes, context.getShape(op->getOperand(0)), context.getShape(op->getOperand(1)))))
    return failure();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult tensorScatter(Operation *op, ShapeContext &context) {
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes)
    return success();
  if (failed(checkSlices(op, *sizes, context.getShape(op->getOperand(1)), context.getShape(op->getOperand(2)))))
    return failure();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult dynamicPartition(Operation *op, ShapeContext &context) {
  auto data = context.getShape(op->getOperand(0)), parts = context.getShape(op->getOperand(1));
  if (!data || !parts || parts->size() > data->size())
    return success();
  Dims sizes = {Dim()};
  sizes.append(data->begin() + parts->size(), data->end());
  for (Value result : op->getResults())
    context.setShape(result, sizes);
  return success();
}

} // namespace distc::dfg::shapes

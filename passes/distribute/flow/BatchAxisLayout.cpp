//===- BatchAxisLayout.cpp - The batch's axis where elements only move ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "passes/distribute/flow/BatchAxisRules.h"

using namespace mlir;

namespace distc::batchaxis {
namespace {

/// Longer lists of segments are not followed.
constexpr size_t kMaxSegments = 4096;

/// The segments of [begin, begin + size), where they begin and end there.
std::optional<Segments> cut(const BatchAxis &axis, int64_t begin, int64_t size) {
  if (axis.uniform)
    return Segments{size};
  Segments taken;
  int64_t at = 0;
  for (int64_t segment : axis.segments) {
    if (at >= begin && at + segment <= begin + size)
      taken.push_back(segment);
    else if (at + segment > begin && at < begin + size)
      return std::nullopt;
    at += segment;
  }
  return taken;
}

/// The same, of sizes that are multiples of the batch; none where they are not.
std::optional<Segments> cutRows(const BatchAxis &axis, Dim begin, Dim size) {
  if (!(begin == Dim(0) || begin.isMultipleOfBatch()) || !size.isMultipleOfBatch() || size.getScale() <= 0)
    return std::nullopt;
  auto taken = cut(axis, begin.getScale(), size.getScale());
  return taken && sum(*taken) == size.getScale() ? taken : std::nullopt;
}

/// Whether the slice begins at a constant along every axis but `batch`.
bool startsAlike(const dfg::shapes::ResolvedSlice &slice, int64_t batch) {
  for (auto [axis, begin] : llvm::enumerate(slice.begin))
    if (static_cast<int64_t>(axis) != batch && !begin.isConstant())
      return false;
  return true;
}

std::optional<int64_t> getProduct(ArrayRef<Dim> sizes) {
  Dim product = 1;
  for (Dim size : sizes)
    product = product * size;
  return product.isConstant() ? std::optional(product.getConstant()) : std::nullopt;
}

} // namespace

/// The flat view of the operand is a list of segments; the result's must be the same list.
BatchPlacement Rules::reshape() {
  auto from = sizesOf(0), to = shapes.getShape(op->getResult(0));
  if (!from || !to)
    return unknown;
  auto at = findBatchSize(*to);
  if (!at)
    return unknown;
  int64_t scale = (*to)[*at].getScale();
  const BatchAxis &old = *axes[0];
  auto outer = getProduct(ArrayRef(*from).take_front(old.axis)), newOuter = getProduct(ArrayRef(*to).take_front(*at));
  if (!outer || !newOuter || *outer <= 0 || *newOuter <= 0)
    return unknown;
  if (*outer == *newOuter && scale == sum(old.segments))
    return along({*at, old.segments, old.uniform});
  if (*outer == *newOuter && old.segments.size() == 1)
    return along({*at, {scale}, false});
  auto inner = getProduct(ArrayRef(*from).drop_front(old.axis + 1)),
       newInner = getProduct(ArrayRef(*to).drop_front(*at + 1));
  size_t count = *outer * old.segments.size();
  if (!inner || !newInner || *newInner <= 0 || count > kMaxSegments || count % *newOuter)
    return unknown;
  size_t period = count / *newOuter;
  auto flat = [&](size_t i) { return old.segments[i % old.segments.size()] * *inner; };
  BatchAxis found{*at, {}, false};
  for (size_t i = 0; i < count; ++i) {
    if (flat(i) % *newInner || flat(i) != flat(i % period))
      return unknown;
    if (i < period)
      found.segments.push_back(flat(i) / *newInner);
  }
  return sum(found.segments) == scale ? along(found) : unknown;
}

BatchPlacement Rules::transpose() {
  auto permutation = shapes.getConstants(op->getOperand(1));
  if (!permutation)
    return unknown;
  for (auto [to, from] : llvm::enumerate(*permutation))
    if (normalize(from, permutation->size()) == axes[0]->axis)
      return moved(*axes[0], to);
  return unknown;
}

BatchPlacement Rules::squeeze() {
  auto sizes = sizesOf(0);
  if (!sizes)
    return unknown;
  SmallVector<bool> gone(sizes->size(), false);
  auto dims = llvm::cast<dfg::SqueezeOp>(op).getSqueezeDims();
  for (Attribute attribute : dims) {
    auto axis = normalize(llvm::cast<IntegerAttr>(attribute).getInt(), sizes->size());
    if (!axis)
      return unknown;
    gone[*axis] = true;
  }
  for (auto [axis, size] : llvm::enumerate(*sizes)) {
    if (dims.empty() && !size.isKnown())
      return unknown;
    if (dims.empty())
      gone[axis] = size == Dim(1);
  }
  if (gone[axes[0]->axis])
    return unknown;
  return moved(*axes[0], axes[0]->axis - std::count(gone.begin(), gone.begin() + axes[0]->axis, true));
}

BatchPlacement Rules::tile() {
  auto multiples = elementsOf(1);
  if (!multiples || static_cast<int64_t>(multiples->size()) <= axes[0]->axis)
    return unknown;
  Dim times = (*multiples)[axes[0]->axis];
  if (!times.isConstant() || times.getConstant() < 1 || axes[0]->segments.size() * times.getConstant() > kMaxSegments)
    return unknown;
  BatchAxis found = *axes[0];
  for (int64_t i = 1; i < times.getConstant(); ++i)
    found.segments.append(axes[0]->segments.begin(), axes[0]->segments.end());
  return along(found);
}

BatchPlacement Rules::concat() {
  bool axisFirst = llvm::isa<dfg::ConcatOp>(op);
  unsigned begin = axisFirst ? 1 : 0, end = op->getNumOperands() - (axisFirst ? 0 : 1);
  SmallVector<BatchAxis> mapped;
  for (unsigned operand = begin; operand < end; ++operand) {
    if (axes[operand])
      mapped.push_back(*axes[operand]);
  }
  auto rank = rankOf(begin);
  auto axis = rank ? normalize(constantOf(axisFirst ? 0 : end), *rank) : std::nullopt;
  if (!axis || mapped.empty())
    return unknown;
  if (*axis != mapped.front().axis) {
    for (unsigned operand = begin; operand < end; ++operand)
      if (!axes[operand] && !(fixed && isAlikeAt(operand, mapped.front().axis)))
        return unknown;
    Axis found = merge(mapped);
    return found ? along(*found) : unknown;
  }
  BatchAxis found{*axis, {}, false};
  for (const BatchAxis &part : mapped) {
    if (part.axis != *axis)
      return unknown;
    found.segments.append(part.segments.begin(), part.segments.end());
  }
  return found.segments.size() <= kMaxSegments && mapped.size() == end - begin ? along(found) : unknown;
}

BatchPlacement Rules::split() {
  auto rank = rankOf(1);
  auto axis = rank ? normalize(constantOf(0), *rank) : std::nullopt;
  if (!axis)
    return unknown;
  BatchAxis found = *axes[1];
  if (*axis != found.axis)
    return along(found);
  int64_t parts = op->getNumResults(), total = sum(found.segments);
  if (total % parts)
    return unknown;
  auto taken = cut(found, result * (total / parts), total / parts);
  if (!taken)
    return unknown;
  found.segments = *taken;
  return along(found);
}

BatchPlacement Rules::splitV() {
  auto rank = rankOf(0);
  auto axis = rank ? normalize(constantOf(2), *rank) : std::nullopt;
  if (!axis)
    return unknown;
  BatchAxis found = *axes[0];
  if (*axis != found.axis)
    return along(found);
  Dim begin = 0;
  for (unsigned i = 0; i <= result; ++i) {
    auto sizes = shapes.getShape(op->getResult(i));
    Dim size = sizes ? (*sizes)[*axis] : Dim();
    if (!size.isMultipleOfBatch() || size.getScale() <= 0)
      return unknown;
    if (i == result) {
      auto taken = cut(found, begin.getScale(), size.getScale());
      if (!taken)
        return unknown;
      found.segments = *taken;
      return along(found);
    }
    begin = begin + size;
  }
  return unknown;
}

BatchPlacement Rules::pack() {
  SmallVector<BatchAxis> mapped;
  auto rank = rankOf(0);
  auto at = rank ? normalize(llvm::cast<dfg::PackOp>(op).getAxisAttr().getInt(), *rank + 1) : std::nullopt;
  for (const Axis &axis : axes)
    if (axis)
      mapped.push_back(*axis);
  Axis found = merge(mapped);
  for (unsigned operand = 0; found && operand < axes.size(); ++operand)
    if (!axes[operand] && !(fixed && isAlikeAt(operand, found->axis)))
      return unknown;
  return found && at ? moved(*found, found->axis + (*at <= found->axis)) : unknown;
}

BatchPlacement Rules::slice() {
  auto sizes = sizesOf(0), begin = elementsOf(1), to = shapes.getShape(op->getResult(0));
  if (!sizes || !begin || !to || begin->size() != sizes->size() || to->size() != sizes->size())
    return unknown;
  BatchAxis found = *axes[0];
  for (auto [axis, from] : llvm::enumerate(*begin))
    if (static_cast<int64_t>(axis) != found.axis && !from.isConstant())
      return unknown;
  auto taken = cutRows(found, asRows((*begin)[found.axis]), asRows((*to)[found.axis]));
  if (!taken)
    return unknown;
  found.segments = *taken;
  return along(found);
}

/// Of a strided slice of `sizes`, or its gradient, what it does, and where it has the rows of the batch's axis in terms
/// of the batch. Where the graph has the batch as a number a slice [0, 32) of 2b rows has no size by itself: with
/// numbers for all it has, as long as no place of another axis is one that depends on the batch.
std::optional<Rules::SliceOfRows> Rules::resolveRows(const Dims &sizes, int64_t axis) const {
  auto begin = elementsOf(1), end = elementsOf(2);
  auto strides = shapes.getConstants(op->getOperand(3));
  if (!begin || !end || !strides)
    return std::nullopt;
  auto slice = dfg::shapes::resolveStridedSlice(op, sizes, *begin, *end, *strides);
  auto areConstant = [](ArrayRef<Dim> dims) { return llvm::all_of(dims, [](Dim dim) { return dim.isConstant(); }); };
  if (!slice && fixed && areConstant(*begin) && areConstant(*end))
    slice = dfg::shapes::resolveStridedSlice(
        op, llvm::map_to_vector<4>(sizes, [&](Dim dim) { return fixed->asNumber(dim); }), *begin, *end, *strides);
  if (!slice || !startsAlike(*slice, axis) || slice->stride[axis] != 1)
    return std::nullopt;
  auto *at = llvm::find(slice->resultAxes, axis);
  if (at == slice->resultAxes.end())
    return std::nullopt;
  const Dim size = slice->size[axis];
  return SliceOfRows{at - slice->resultAxes.begin(), asRows(slice->begin[axis]), asRows(size),
                     size == sizes[axis] || (fixed && size == fixed->asNumber(sizes[axis]))};
}

BatchPlacement Rules::stridedSlice() {
  auto sizes = sizesOf(0);
  auto slice = sizes ? resolveRows(*sizes, axes[0]->axis) : std::nullopt;
  if (!slice)
    return unknown;
  BatchAxis found = *axes[0];
  if (!slice->isWhole) {
    auto taken = cutRows(found, slice->begin, slice->size);
    if (!taken)
      return unknown;
    found.segments = *taken;
  }
  return moved(found, slice->resultAxis);
}

BatchPlacement Rules::stridedSliceGrad() {
  auto sizes = shapes.getShape(op->getResult(0));
  auto at = sizes ? findBatchSize(*sizes) : std::nullopt;
  auto slice = at && axes[4] ? resolveRows(*sizes, *at) : std::nullopt;
  if (!slice || slice->resultAxis != axes[4]->axis)
    return unknown;
  if (slice->isWhole)
    return moved(*axes[4], *at);
  // Where the graph has the shape as numbers, zeros are segments as good as any of their size.
  if (fixed && !axes[0])
    return amongZeros(*axes[4], *at, slice->begin, (*sizes)[*at]);
  // Some segments of what was sliced; the others are zeros.
  if (!axes[0] || axes[0]->axis != *at || axes[0]->uniform || !(Dim::batch(sum(axes[0]->segments)) == (*sizes)[*at]))
    return unknown;
  auto taken = cutRows(*axes[0], slice->begin, slice->size);
  return taken && (axes[4]->uniform || axes[4]->segments == *taken) ? along(*axes[0]) : unknown;
}

BatchPlacement Rules::pad() {
  auto paddings = elementsOf(1), sizes = shapes.getShape(op->getResult(0));
  size_t axis = axes[0]->axis;
  if (!onlySharded(0) || !paddings || paddings->size() < 2 * axis + 2)
    return unknown;
  const Dim before = (*paddings)[2 * axis], behind = (*paddings)[2 * axis + 1];
  if (before == Dim(0) && behind == Dim(0))
    return along(*axes[0]);
  // The gradient of a slice.
  if (!fixed || !llvm::isa<dfg::PadOp>(op) || !sizes)
    return unknown;
  return amongZeros(*axes[0], axes[0]->axis, asRows(before), (*sizes)[axis]);
}

/// Rows from `begin` on, in an axis of `size` in which all others are zeros, alike in every segment.
BatchPlacement Rules::amongZeros(const BatchAxis &rows, int64_t axis, Dim begin, Dim size) const {
  const Dim all = asRows(size);
  if (!begin.isKnown() || !all.isKnown())
    return unknown;
  const int64_t own = sum(rows.segments), behind = all.getScale() - begin.getScale() - own;
  if (begin.getScale() < 0 || behind < 0 || all.getScale() > static_cast<int64_t>(kMaxSegments))
    return unknown;
  BatchAxis found{axis, Segments(begin.getScale(), 1), false};
  found.segments.append(rows.uniform ? Segments(own, 1) : Segments(rows.segments));
  found.segments.append(behind, 1);
  return along(found);
}

} // namespace distc::batchaxis

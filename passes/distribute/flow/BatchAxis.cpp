//===- BatchAxis.cpp - Where the batch's axis goes in a node ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/BatchAxis.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {
namespace {

using dfg::Dim;
using dfg::Dims;
using Axis = std::optional<BatchAxis>;
using Segments = SmallVector<int64_t, 1>;

/// Longer lists of segments are not followed.
constexpr size_t kMaxSegments = 4096;

const BatchPlacement unknown;
const BatchPlacement without{BatchPlacement::Without, {}};
const BatchPlacement summed{BatchPlacement::Summed, {}};

BatchPlacement along(BatchAxis axis) { return {BatchPlacement::Along, std::move(axis)}; }

BatchPlacement moved(BatchAxis axis, int64_t to) {
  axis.axis = to;
  return along(std::move(axis));
}

int64_t sum(ArrayRef<int64_t> segments) {
  int64_t total = 0;
  for (int64_t size : segments)
    total += size;
  return total;
}

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

/// The only axis whose size is a multiple of the batch; none where there is no such axis, or another one whose size
/// depends on it.
std::optional<int64_t> findBatchSize(ArrayRef<Dim> sizes) {
  std::optional<int64_t> found;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    if (!size.dependsOnBatch())
      continue;
    if (found || !size.isMultipleOfBatch() || size.getScale() <= 0)
      return std::nullopt;
    found = axis;
  }
  return found;
}

/// The rules, for one result of one node some operands of which are sharded.
class Rules {
public:
  Rules(Operation *op, unsigned result, ArrayRef<Axis> axes, const dfg::ShapeContext &shapes, const FixedBatch *fixed)
      : op(op), result(result), axes(axes), shapes(shapes), fixed(fixed) {}

  BatchPlacement sharded();
  /// The same where no operand is: an axis of the batch's size may be made here.
  BatchPlacement unsharded();

private:
  std::optional<Dims> sizesOf(unsigned operand) const { return shapes.getShape(op->getOperand(operand)); }
  std::optional<int64_t> rankOf(unsigned operand) const {
    auto sizes = sizesOf(operand);
    return sizes ? std::optional<int64_t>(sizes->size()) : std::nullopt;
  }
  /// A place in the batch's axis in terms of the batch, where the graph has it as a number: that of rows which follow
  /// each other in segments of as many. Segments are cut where they begin and end, so that a number that is no
  /// multiple of the batch's size, or another one, is none of these.
  Dim asRows(Dim at) const { return fixed ? fixed->asRows(at) : at; }
  std::optional<Dims> elementsOf(unsigned operand) const { return shapes.getElements(op->getOperand(operand)); }
  std::optional<int64_t> constantOf(unsigned operand) const { return shapes.getConstant(op->getOperand(operand)); }
  bool anySharded(ArrayRef<unsigned> operands) const {
    return llvm::any_of(operands, [&](unsigned operand) { return axes[operand].has_value(); });
  }
  bool onlySharded(unsigned operand) const {
    for (auto [i, axis] : llvm::enumerate(axes))
      if (axis && i != operand)
        return false;
    return axes[operand].has_value();
  }
  bool flag(llvm::StringRef name) const {
    auto attribute = op->getAttrOfType<BoolAttr>(name);
    return attribute && attribute.getValue();
  }
  /// An axis that may be counted from the back; none where it is no axis.
  static std::optional<int64_t> normalize(std::optional<int64_t> axis, int64_t rank) {
    if (!axis || *axis < -rank || *axis >= rank)
      return std::nullopt;
    return *axis < 0 ? *axis + rank : *axis;
  }
  int64_t getChannelAxis(int64_t rank) const {
    auto format = op->getAttrOfType<StringAttr>("data_format");
    return format && format.getValue() == "NCHW" ? 1 : rank - 1;
  }

  /// The axis that all of `mapped` are, each of one operand; none where they differ.
  static Axis merge(ArrayRef<BatchAxis> mapped);
  /// Whether an operand that is not sharded has the same for every row at `axis` of its own (negative: it has no such
  /// axis).
  bool isAlikeAt(unsigned operand, int64_t axis) const;

  BatchPlacement broadcast(ArrayRef<unsigned> operands, int64_t axesBehind = 0);
  BatchPlacement elementwise();
  BatchPlacement select();
  BatchPlacement reduce(bool sums);
  BatchPlacement argReduce();
  BatchPlacement matMul(int64_t freeA, int64_t freeB);
  BatchPlacement firstAxisOf(ArrayRef<unsigned> operands);
  BatchPlacement avgPoolGrad();
  BatchPlacement biasAdd();
  BatchPlacement batchNorm();
  BatchPlacement batchNormGrad();
  BatchPlacement crossEntropy();
  BatchPlacement reshape();
  BatchPlacement transpose();
  BatchPlacement squeeze();
  BatchPlacement tile();
  BatchPlacement concat();
  BatchPlacement split();
  BatchPlacement splitV();
  BatchPlacement pack();
  BatchPlacement slice();
  BatchPlacement stridedSlice();
  BatchPlacement stridedSliceGrad();
  struct SliceOfRows {
    int64_t resultAxis; // of the batch's axis
    Dim begin, size;
    bool isWhole; // all rows are taken
  };
  std::optional<SliceOfRows> resolveRows(const Dims &sizes, int64_t axis) const;
  BatchPlacement pad();
  BatchPlacement amongZeros(const BatchAxis &rows, int64_t axis, Dim begin, Dim size) const;
  BatchPlacement gather();
  BatchPlacement gatherNd();
  BatchPlacement segments(bool sums);
  BatchPlacement scatterNd();
  BatchPlacement tensorScatter(bool sums);
  BatchPlacement unlessAlong(int64_t operand, bool lastAxis);
  BatchPlacement matrices();

  Operation *op;
  unsigned result;
  ArrayRef<Axis> axes;
  const dfg::ShapeContext &shapes;
  const FixedBatch *fixed; // null where the batch is open
};

Axis Rules::merge(ArrayRef<BatchAxis> mapped) {
  Axis found;
  for (const BatchAxis &next : mapped) {
    if (!found) {
      found = next;
      continue;
    }
    if (found->axis != next.axis || sum(found->segments) != sum(next.segments))
      return std::nullopt;
    if (next.uniform)
      continue;
    if (!found->uniform && found->segments != next.segments)
      return std::nullopt;
    found = next;
  }
  return found;
}

bool Rules::isAlikeAt(unsigned operand, int64_t axis) const {
  auto sizes = sizesOf(operand);
  if (!sizes)
    return false;
  if (axis < 0 || (axis < static_cast<int64_t>(sizes->size()) && (*sizes)[axis] == Dim(1)))
    return true;
  // Where the graph has a number for the batch, what has as many rows may be alike in all of them.
  return fixed && fixed->isAlikeAlong(op->getOperand(operand), axis, shapes);
}

/// `operands` broadcast against each other, but for `axesBehind` axes at the back that are not sharded.
BatchPlacement Rules::broadcast(ArrayRef<unsigned> operands, int64_t axesBehind) {
  int64_t rank = 0;
  for (unsigned operand : operands) {
    auto own = rankOf(operand);
    if (!own)
      return unknown;
    rank = std::max(rank, *own);
  }
  SmallVector<BatchAxis> mapped;
  for (unsigned operand : operands)
    if (axes[operand]) {
      mapped.push_back(*axes[operand]);
      mapped.back().axis += rank - *rankOf(operand);
      if (axesBehind && axes[operand]->axis >= *rankOf(operand) - axesBehind)
        return unknown;
    }
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand : operands)
    if (!axes[operand] && !isAlikeAt(operand, found->axis - (rank - *rankOf(operand))))
      return unknown;
  return along(*found);
}

BatchPlacement Rules::elementwise() { return broadcast(llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()))); }

/// Select, version 1: a condition of rank 1 chooses rows.
BatchPlacement Rules::select() {
  auto condition = rankOf(0), rank = rankOf(1);
  if (!condition || !rank)
    return unknown;
  if (*condition != 1 || *rank == 1)
    return elementwise();
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis)
      mapped.push_back(*axis);
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand = 0; operand < 3; ++operand)
    if (!axes[operand] && !(operand == 0 && found->axis > 0) && !isAlikeAt(operand, found->axis))
      return unknown;
  return along(*found);
}

BatchPlacement Rules::reduce(bool sums) {
  auto rank = rankOf(0);
  auto reduced = shapes.getConstants(op->getOperand(1));
  if (!rank || !reduced)
    return unknown;
  int64_t before = 0;
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : *reduced) {
    auto at = normalize(axis, *rank);
    if (!at)
      return unknown;
    if (*at == axes[0]->axis)
      return sums ? summed : unknown;
    before += *at < axes[0]->axis && seen.insert(*at).second;
  }
  return moved(*axes[0], axes[0]->axis - (flag("keep_dims") ? 0 : before));
}

BatchPlacement Rules::argReduce() {
  auto rank = rankOf(0);
  auto axis = rank ? normalize(constantOf(1), *rank) : std::nullopt;
  if (!axis || *axis == axes[0]->axis)
    return unknown;
  return moved(*axes[0], axes[0]->axis - (*axis < axes[0]->axis));
}

/// `freeA`, `freeB`: the axis of each matrix, counted from the back, that is not contracted.
BatchPlacement Rules::matMul(int64_t freeA, int64_t freeB) {
  auto rankA = rankOf(0), rankB = rankOf(1);
  if (!rankA || !rankB || *rankA < 2 || *rankB < 2)
    return unknown;
  int64_t rank = std::max(*rankA, *rankB);
  int64_t a = axes[0] ? axes[0]->axis - *rankA : 0, b = axes[1] ? axes[1]->axis - *rankB : 0;
  // Axes before the matrices' broadcast.
  if (a < -2 || b < -2)
    return broadcast({0, 1}, 2);
  int64_t contractedA = -3 - freeA, contractedB = -3 - freeB;
  if (axes[0] && axes[1]) {
    BatchAxis x = *axes[0], y = *axes[1];
    x.axis = y.axis = 0;
    return a == contractedA && b == contractedB && merge({x, y}) ? summed : unknown;
  }
  if (a == freeA)
    return moved(*axes[0], rank - 2);
  if (b == freeB)
    return moved(*axes[1], rank - 1);
  bool isAlike = axes[0] ? isAlikeAt(1, *rankB + contractedB) : isAlikeAt(0, *rankA + contractedA);
  return fixed && isAlike ? summed : unknown;
}

/// Examples along axis 0 of all `operands`, each treated by itself.
BatchPlacement Rules::firstAxisOf(ArrayRef<unsigned> operands) {
  SmallVector<BatchAxis> mapped;
  for (unsigned operand : operands) {
    if (!axes[operand] || axes[operand]->axis != 0)
      return unknown;
    mapped.push_back(*axes[operand]);
  }
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis && !llvm::is_contained(operands, i))
      return unknown;
  Axis found = merge(mapped);
  return found ? along(*found) : unknown;
}

BatchPlacement Rules::avgPoolGrad() {
  // A gradient of another shape than the pooling's result is read across the images.
  auto images = shapes.getShape(op->getResult(0)), gradient = shapes.getShape(op->getOperand(1));
  if (!images || images->size() != 4 || !gradient || gradient->size() != 4)
    return unknown;
  auto padding = op->getAttrOfType<StringAttr>("padding");
  for (int64_t axis = 1; axis < 4; ++axis) {
    Dim pooled = dfg::shapes::resolveWindow((*images)[axis], dfg::shapes::getArrayEntry(op, "ksize", axis, 1),
                                            dfg::shapes::getArrayEntry(op, "strides", axis, 1), 1, padding.getValue())
                     .size;
    if (!(pooled == (*gradient)[axis]))
      return unknown;
  }
  return firstAxisOf({1});
}

BatchPlacement Rules::biasAdd() {
  auto rank = rankOf(0);
  if (!rank || !onlySharded(0) || axes[0]->axis == getChannelAxis(*rank))
    return unknown;
  return along(*axes[0]);
}

BatchPlacement Rules::batchNorm() {
  auto rank = rankOf(0);
  // In training the statistics are the batch's.
  if (!rank || flag("is_training") || !op->hasAttr("is_training") || !onlySharded(0) ||
      axes[0]->axis == getChannelAxis(*rank))
    return unknown;
  return result == 0 ? along(*axes[0]) : without;
}

BatchPlacement Rules::batchNormGrad() {
  auto rank = rankOf(0);
  if (!rank || flag("is_training") || !op->hasAttr("is_training") || !axes[0] || !axes[1] || anySharded({2, 3, 4}))
    return unknown;
  Axis found = merge({*axes[0], *axes[1]});
  if (!found || found->axis == getChannelAxis(*rank))
    return unknown;
  return result == 0 ? along(*found) : result < 3 ? summed : without;
}

BatchPlacement Rules::crossEntropy() {
  bool sparse = llvm::isa<dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(op);
  for (unsigned operand : {0u, 1u})
    if (axes[operand] ? axes[operand]->axis != 0 : sparse || !isAlikeAt(operand, 0))
      return unknown;
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis)
      mapped.push_back(*axis);
  Axis found = merge(mapped);
  return found ? along(*found) : unknown;
}

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

BatchPlacement Rules::gather() {
  auto params = rankOf(0), indices = rankOf(1);
  if (!params || !indices)
    return unknown;
  auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
  int64_t lead = batchDims ? batchDims.getInt() : 0;
  lead = lead < 0 ? lead + *indices : lead;
  auto gathered = op->getNumOperands() > 2 ? normalize(constantOf(2), *params) : std::optional<int64_t>(lead);
  if (!gathered)
    return unknown;
  if (axes[0] && axes[1]) {
    Axis found = merge({*axes[0], *axes[1]});
    return found && found->axis < lead ? along(*found) : unknown;
  }
  if (axes[1])
    return axes[1]->axis < lead ? unknown : moved(*axes[1], *gathered + axes[1]->axis - lead);
  // Rows of the batch by number: a replica has only some of them.
  if (axes[0]->axis == *gathered || axes[0]->axis < lead)
    return unknown;
  return moved(*axes[0], axes[0]->axis < *gathered ? axes[0]->axis : axes[0]->axis - 1 + *indices - lead);
}

BatchPlacement Rules::gatherNd() {
  auto indices = sizesOf(1);
  if (!indices || indices->empty() || !indices->back().isConstant() || (axes[0] && axes[1]))
    return unknown;
  int64_t depth = indices->back().getConstant(), rank = indices->size();
  if (axes[1])
    return axes[1]->axis < rank - 1 ? along(*axes[1]) : unknown;
  return axes[0]->axis >= depth ? moved(*axes[0], rank - 1 + axes[0]->axis - depth) : unknown;
}

BatchPlacement Rules::segments(bool sums) {
  auto ids = rankOf(1);
  if (!ids)
    return unknown;
  if (axes[0] && axes[1])
    return sums && merge({*axes[0], *axes[1]}) && axes[0]->axis < *ids ? summed : unknown;
  return axes[0] && axes[0]->axis >= *ids ? moved(*axes[0], axes[0]->axis - *ids + 1) : unknown;
}

BatchPlacement Rules::scatterNd() {
  auto indices = sizesOf(0);
  if (!indices || indices->empty() || !indices->back().isConstant())
    return unknown;
  int64_t rank = indices->size();
  if (axes[0] && axes[1])
    return merge({*axes[0], *axes[1]}) && axes[1]->axis < rank - 1 ? summed : unknown;
  if (axes[1] && axes[1]->axis >= rank - 1)
    return moved(*axes[1], indices->back().getConstant() + axes[1]->axis - (rank - 1));
  return unknown;
}

/// Operands: a tensor, indices into its first axes, and updates.
BatchPlacement Rules::tensorScatter(bool sums) {
  auto indices = sizesOf(1);
  if (!indices || indices->empty() || !indices->back().isConstant() || !axes[2])
    return unknown;
  int64_t depth = indices->back().getConstant(), rank = indices->size();
  // Rows of the batch, added to what is no row: once a replica, which the caller looks at.
  if (axes[1])
    return sums && !axes[0] && merge({*axes[1], *axes[2]}) && axes[2]->axis < rank - 1 ? summed : unknown;
  if (!axes[0] || axes[0]->axis < depth || axes[2]->axis < rank - 1)
    return unknown;
  // The batch's axis lies behind those that are named.
  BatchAxis updates = *axes[2];
  updates.axis += depth - (rank - 1);
  Axis found = merge({*axes[0], updates});
  return found ? along(*found) : unknown;
}

/// What works along one axis, which must not be the batch's: the last one, or the constant that `operand` is.
BatchPlacement Rules::unlessAlong(int64_t operand, bool lastAxis) {
  auto rank = rankOf(0);
  if (!rank || !onlySharded(0))
    return unknown;
  if (lastAxis)
    return axes[0]->axis == *rank - 1 ? unknown : along(*axes[0]);
  auto listed = shapes.getConstants(op->getOperand(operand));
  if (!listed)
    return unknown;
  for (int64_t axis : *listed)
    if (auto at = normalize(axis, *rank); !at || *at == axes[0]->axis)
      return unknown;
  return along(*axes[0]);
}

/// Of matrices that are examples' own the batch's axis is in front of all operands and results.
BatchPlacement Rules::matrices() {
  auto rank = rankOf(0);
  auto sizes = shapes.getShape(op->getResult(result));
  if (!rank || !sizes)
    return unknown;
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis) {
      if (axis->axis >= *rank - 2)
        return unknown;
      mapped.push_back(*axis);
    }
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (!axes[operand] && rankOf(operand) != 0 && !isAlikeAt(operand, found->axis))
      return unknown;
  return *sizes == Dims{Dim(0)} ? without : along(*found);
}

BatchPlacement Rules::sharded() {
  if (llvm::isa<dfg::SelectOp>(op))
    return select();
  if (llvm::isa<dfg::ScalarInterface>(op))
    return elementwise();
  if (op->hasTrait<dfg::OfMatrices>())
    return matrices();
  return llvm::TypeSwitch<Operation *, BatchPlacement>(op)
      .Case<dfg::EnsureShapeOp, dfg::CheckNumericsOp, dfg::PlaceholderWithDefaultOp>(
          [&](auto) { return along(*axes[0]); })
      .Case<dfg::SumOp, dfg::MeanOp>([&](auto) { return reduce(true); })
      .Case<dfg::MaxOp, dfg::MinOp, dfg::ProdOp, dfg::AllOp, dfg::AnyOp, dfg::EuclideanNormOp>(
          [&](auto) { return reduce(false); })
      .Case<dfg::L2LossOp>([&](auto) { return summed; })
      .Case<dfg::ArgMaxOp, dfg::ArgMinOp>([&](auto) { return argReduce(); })
      .Case<dfg::MatMulOp>(
          [&](auto product) { return matMul(product.getTransposeA() ? -1 : -2, product.getTransposeB() ? -2 : -1); })
      .Case<dfg::BatchMatMulOp, dfg::BatchMatMulV2Op, dfg::BatchMatMulV3Op>(
          [&](auto) { return matMul(flag("adj_x") ? -1 : -2, flag("adj_y") ? -2 : -1); })
      .Case<dfg::Conv2DOp, dfg::DepthwiseConv2dNativeOp, dfg::MaxPoolOp, dfg::AvgPoolOp>(
          [&](auto) { return firstAxisOf({0}); })
      .Case<dfg::Conv2DBackpropInputOp, dfg::DepthwiseConv2dNativeBackpropInputOp>(
          [&](auto) { return firstAxisOf({2}); })
      .Case<dfg::Conv2DBackpropFilterOp, dfg::DepthwiseConv2dNativeBackpropFilterOp>(
          [&](auto) { return firstAxisOf({0, 2}).kind == BatchPlacement::Along ? summed : unknown; })
      .Case<dfg::MaxPoolGradOp>([&](auto) { return firstAxisOf({0, 1, 2}); })
      .Case<dfg::AvgPoolGradOp>([&](auto) { return avgPoolGrad(); })
      .Case<dfg::BiasAddOp, dfg::BiasAddV1Op>([&](auto) { return biasAdd(); })
      .Case<dfg::BiasAddGradOp>([&](auto) {
        auto rank = rankOf(0);
        return !rank ? unknown : axes[0]->axis == getChannelAxis(*rank) ? moved(*axes[0], 0) : summed;
      })
      .Case<dfg::FusedBatchNormOp, dfg::FusedBatchNormV2Op, dfg::FusedBatchNormV3Op>([&](auto) { return batchNorm(); })
      .Case<dfg::FusedBatchNormGradOp, dfg::FusedBatchNormGradV2Op, dfg::FusedBatchNormGradV3Op>(
          [&](auto) { return batchNormGrad(); })
      .Case<dfg::SoftmaxOp, dfg::LogSoftmaxOp, dfg::TopKOp, dfg::TopKV2Op>([&](auto) { return unlessAlong(-1, true); })
      // What is drawn is drawn alike by all replicas; true classes are only looked up.
      .Case<dfg::LogUniformCandidateSamplerOp, dfg::UniformCandidateSamplerOp>([&](auto) {
        return result != 1 ? without : axes[0]->axis == 0 ? along(*axes[0]) : unknown;
      })
      .Case<dfg::CtcLossRowsOp>([&](auto) { return firstAxisOf({0, 1, 2}); })
      .Case<dfg::SoftmaxCrossEntropyWithLogitsOp, dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(
          [&](auto) { return crossEntropy(); })
      .Case<dfg::ReverseV2Op, dfg::CumsumOp, dfg::CumprodOp, dfg::CumulativeLogsumexpOp>(
          [&](auto) { return unlessAlong(1, false); })
      .Case<dfg::ReshapeOp>([&](auto) { return reshape(); })
      .Case<dfg::TransposeOp>([&](auto) { return transpose(); })
      .Case<dfg::ExpandDimsOp>([&](auto) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(constantOf(1), *rank + 1) : std::nullopt;
        return at ? moved(*axes[0], axes[0]->axis + (*at <= axes[0]->axis)) : unknown;
      })
      .Case<dfg::SqueezeOp>([&](auto) { return squeeze(); })
      .Case<dfg::TileOp>([&](auto) { return tile(); })
      .Case<dfg::BroadcastToOp>([&](auto) {
        auto rank = rankOf(0);
        auto to = shapes.getShape(op->getResult(0));
        return rank && to && onlySharded(0) ? moved(*axes[0], axes[0]->axis + static_cast<int64_t>(to->size()) - *rank)
                                            : unknown;
      })
      .Case<dfg::ConcatV2Op, dfg::ConcatOp>([&](auto) { return concat(); })
      .Case<dfg::SplitOp>([&](auto) { return split(); })
      .Case<dfg::SplitVOp>([&](auto) { return splitV(); })
      .Case<dfg::PackOp>([&](auto) { return pack(); })
      .Case<dfg::UnpackOp>([&](auto unpack) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(unpack.getAxisAttr().getInt(), *rank) : std::nullopt;
        return at && *at != axes[0]->axis ? moved(*axes[0], axes[0]->axis - (*at < axes[0]->axis)) : unknown;
      })
      .Case<dfg::SliceOp>([&](auto) { return slice(); })
      .Case<dfg::StridedSliceOp>([&](auto) { return stridedSlice(); })
      .Case<dfg::StridedSliceGradOp>([&](auto) { return stridedSliceGrad(); })
      .Case<dfg::PadOp, dfg::PadV2Op>([&](auto) { return pad(); })
      .Case<dfg::OneHotOp>([&](auto oneHot) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(oneHot.getAxisAttr().getInt(), *rank + 1) : std::nullopt;
        return at && onlySharded(0) && constantOf(1) ? moved(*axes[0], axes[0]->axis + (*at <= axes[0]->axis))
                                                     : unknown;
      })
      .Case<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>([&](auto) { return gather(); })
      .Case<dfg::GatherNdOp, dfg::ResourceGatherNdOp>([&](auto) { return gatherNd(); })
      .Case<dfg::UnsortedSegmentSumOp>([&](auto) { return segments(true); })
      .Case<dfg::UnsortedSegmentProdOp, dfg::UnsortedSegmentMaxOp, dfg::UnsortedSegmentMinOp>(
          [&](auto) { return segments(false); })
      .Case<dfg::ScatterNdOp>([&](auto) { return scatterNd(); })
      .Case<dfg::TensorScatterAddOp, dfg::TensorScatterSubOp, dfg::ScatterNdNonAliasingAddOp>(
          [&](auto) { return tensorScatter(true); })
      .Case<dfg::TensorScatterUpdateOp, dfg::TensorScatterMaxOp, dfg::TensorScatterMinOp>(
          [&](auto) { return tensorScatter(false); })
      .Default([](Operation *) { return unknown; });
}

BatchPlacement Rules::unsharded() {
  auto sizes = shapes.getShape(op->getResult(result));
  if (!sizes || llvm::none_of(*sizes, [](Dim size) { return size.dependsOnBatch(); }))
    return without;
  auto at = findBatchSize(*sizes);
  if (!at)
    return unknown;
  BatchAxis found{*at, {(*sizes)[*at].getScale()}, true};
  if (llvm::isa<dfg::FillOp>(op))
    return along(found);
  // Replicas draw their parts of one row-major tensor.
  if (drawsRows(op)) {
    found.uniform = false;
    return *at == 0 ? along(found) : unknown;
  }
  if (!llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op))
    return unknown;
  auto from = sizesOf(0);
  if (!from)
    return unknown;
  int64_t axis = *at - (static_cast<int64_t>(sizes->size()) - static_cast<int64_t>(from->size()));
  // A tile of more rows repeats itself, and each replica's share of it is the same.
  found.uniform = axis < 0 || (*from)[axis] == Dim(1);
  return found.uniform || llvm::isa<dfg::TileOp>(op) ? along(found) : unknown;
}

} // namespace

bool drawsRows(Operation *op) { return op->hasTrait<dfg::DrawsNumbers>() && !llvm::isa<dfg::RandomPermutationOp>(op); }

bool isParameterOperand(Operation *op, unsigned operand) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  return node && node.isParameter(operand, op->getNumOperands() - 1);
}

bool showsParametersInSizes(Operation *op) { return op->hasTrait<dfg::SizedByParameter>(); }

BatchPlacement findBatchPlacement(Operation *op, unsigned result, ArrayRef<Axis> axes, const dfg::ShapeContext &shapes,
                                  const FixedBatch *fixed) {
  Rules rules(op, result, axes, shapes, fixed);
  bool any = llvm::any_of(axes, [](const Axis &axis) { return axis.has_value(); });
  BatchPlacement found = any ? rules.sharded() : rules.unsharded();
  if (found.kind == BatchPlacement::Unknown)
    return found;
  // What the shapes say must agree: a size, or its number where the graph fixes the batch.
  auto sizes = shapes.getShape(op->getResult(result));
  for (size_t axis = 0; sizes && axis < sizes->size(); ++axis) {
    bool isBatch = found.kind == BatchPlacement::Along && static_cast<int64_t>(axis) == found.axis.axis;
    Dim size = (*sizes)[axis];
    int64_t scale = isBatch ? sum(found.axis.segments) : 0;
    bool isRows = !size.isKnown() || size == Dim::batch(scale) || (fixed && size == Dim(scale * fixed->size));
    if (isBatch ? !isRows : size.dependsOnBatch())
      return unknown;
  }
  return found;
}

} // namespace distc

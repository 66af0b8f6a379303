//===- Layout.cpp - Elements that move ---------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace distc::dfg::decompositions {

// ---- Mirrored borders ----------------------------------------------------------------------

/// One axis at a time: {axis, before, behind}. REFLECT leaves the outermost elements out.
template <typename Step> static Result mirror(Operation *op, GraphBuilder &g, Step step) {
  FailureOr<SmallVector<int64_t>> paddings = g.getConstants(op->getOperand(1));
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(paddings) || failed(shape) || paddings->size() != 2 * shape->size())
    return failure();
  Value x = op->getOperand(0);
  int64_t left = getText(op, "mode") == "REFLECT" ? 1 : 0;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    int64_t before = (*paddings)[2 * axis], behind = (*paddings)[2 * axis + 1];
    if (before == 0 && behind == 0)
      continue;
    if (!(*shape)[axis].isConstant())
      return g.fail("the size of an axis that is padded is not known");
    x = step(x, static_cast<int64_t>(axis), (*shape)[axis].getConstant(), before, behind, left);
  }
  return one(g, x);
}

Result mirrorPad(Operation *op, GraphBuilder &g) {
  return mirror(op, g, [&](Value x, int64_t axis, int64_t size, int64_t before, int64_t behind, int64_t left) {
    SmallVector<Value> parts;
    if (before)
      parts.push_back(g.reverse(g.slice(x, axis, left, before), axis));
    parts.push_back(x);
    if (behind)
      parts.push_back(g.reverse(g.slice(x, axis, size - left - behind, behind), axis));
    return g.concat(parts, axis);
  });
}

Result mirrorPadGrad(Operation *op, GraphBuilder &g) {
  return mirror(op, g, [&](Value dy, int64_t axis, int64_t padded, int64_t before, int64_t behind, int64_t left) {
    int64_t size = padded - before - behind;
    SmallVector<Value> terms = {g.slice(dy, axis, before, size)};
    if (before)
      terms.push_back(g.padAxis(g.reverse(g.slice(dy, axis, 0, before), axis), axis, left, size - left - before));
    if (behind)
      terms.push_back(
          g.padAxis(g.reverse(g.slice(dy, axis, before + size, behind), axis), axis, size - left - behind, left));
    return g.addAll(terms);
  });
}

// ---- Blocks of an image ------------------------------------------------------------------------

Result spaceToDepth(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || shape->size() != 4)
    return failure();
  Dims s = *shape;
  Dim block = getNumber(op, "block_size");
  if (getText(op, "data_format") == "NCHW") {
    Dim h = floorDiv(s[2], block), w = floorDiv(s[3], block);
    Value cut = g.transpose(g.reshape(x, {s[0], s[1], h, block, w, block}), {0, 3, 5, 1, 2, 4});
    return one(g, g.reshape(cut, {s[0], s[1] * block * block, h, w}));
  }
  Dim h = floorDiv(s[1], block), w = floorDiv(s[2], block);
  Value cut = g.transpose(g.reshape(x, {s[0], h, block, w, block, s[3]}), {0, 1, 3, 2, 4, 5});
  return one(g, g.reshape(cut, {s[0], h, w, s[3] * block * block}));
}

Result depthToSpace(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || shape->size() != 4)
    return failure();
  Dims s = *shape;
  Dim block = getNumber(op, "block_size");
  if (getText(op, "data_format") == "NCHW") {
    Dim depth = floorDiv(s[1], block * block);
    Value cut = g.transpose(g.reshape(x, {s[0], block, block, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
    return one(g, g.reshape(cut, {s[0], depth, s[2] * block, s[3] * block}));
  }
  Dim depth = floorDiv(s[3], block * block);
  Value cut = g.transpose(g.reshape(x, {s[0], s[1], s[2], block, block, depth}), {0, 1, 3, 2, 4, 5});
  return one(g, g.reshape(cut, {s[0], s[1] * block, s[2] * block, depth}));
}

namespace {

/// Blocks along the axes behind the first, and what is padded or cropped there.
struct Blocks {
  SmallVector<int64_t> sizes, borders;

  static FailureOr<Blocks> of(Operation *op, GraphBuilder &g) {
    // Version 1 has one size for both axes of an image.
    const bool isFirst = op->getNumOperands() == 2;
    FailureOr<SmallVector<int64_t>> borders = g.getConstants(op->getOperand(isFirst ? 1 : 2));
    FailureOr<SmallVector<int64_t>> sizes =
        isFirst ? FailureOr<SmallVector<int64_t>>(SmallVector<int64_t>(2, getNumber(op, "block_size")))
                : g.getConstants(op->getOperand(1));
    if (failed(borders) || failed(sizes) || borders->size() != 2 * sizes->size())
      return failure();
    return Blocks{*sizes, *borders};
  }
};

} // namespace

Result spaceToBatch(Operation *op, GraphBuilder &g) {
  FailureOr<Blocks> blocks = Blocks::of(op, g);
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(blocks) || failed(shape))
    return failure();
  int64_t count = blocks->sizes.size(), rank = shape->size();
  SmallVector<int64_t> paddings(2 * rank, 0);
  llvm::copy(blocks->borders, paddings.begin() + 2);
  Value x = g.pad(op->getOperand(0), paddings);
  if (shape = g.getShape(x); failed(shape))
    return failure();
  Dims cut = {(*shape)[0]}, joined = {(*shape)[0]};
  SmallVector<int64_t> inner, outer = {0};
  for (int64_t i = 0; i < count; ++i) {
    Dim size = floorDiv((*shape)[1 + i], blocks->sizes[i]);
    cut.append({size, Dim(blocks->sizes[i])});
    joined.push_back(size);
    joined[0] = joined[0] * Dim(blocks->sizes[i]);
    outer.push_back(1 + 2 * i);
    inner.push_back(2 + 2 * i);
  }
  for (int64_t axis = 1 + count; axis < rank; ++axis) {
    cut.push_back((*shape)[axis]);
    joined.push_back((*shape)[axis]);
    outer.push_back(axis + count);
  }
  inner.append(outer);
  return one(g, g.reshape(g.transpose(g.reshape(x, cut), inner), joined));
}

Result batchToSpace(Operation *op, GraphBuilder &g) {
  FailureOr<Blocks> blocks = Blocks::of(op, g);
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(blocks) || failed(shape))
    return failure();
  int64_t count = blocks->sizes.size(), rank = shape->size(), all = 1;
  Dims cut, joined;
  for (int64_t size : blocks->sizes) {
    cut.push_back(size);
    all *= size;
  }
  Dim batch = floorDiv((*shape)[0], all);
  cut.push_back(batch);
  joined.push_back(batch);
  SmallVector<int64_t> permutation = {count};
  for (int64_t i = 0; i < count; ++i) {
    cut.push_back((*shape)[1 + i]);
    joined.push_back((*shape)[1 + i] * Dim(blocks->sizes[i]));
    permutation.append({count + 1 + i, i});
  }
  for (int64_t axis = 1 + count; axis < rank; ++axis) {
    cut.push_back((*shape)[axis]);
    joined.push_back((*shape)[axis]);
    permutation.push_back(axis + count);
  }
  Value x = g.reshape(g.transpose(g.reshape(op->getOperand(0), cut), permutation), joined);
  for (int64_t i = 0; i < count; ++i) {
    int64_t before = blocks->borders[2 * i], behind = blocks->borders[2 * i + 1];
    if (before == 0 && behind == 0)
      continue;
    if (!joined[1 + i].isConstant())
      return g.fail("the size of an axis that is cropped is not known");
    x = g.slice(x, 1 + i, before, joined[1 + i].getConstant() - before - behind);
  }
  return one(g, x);
}

// ---- Along an axis ---------------------------------------------------------------------------------

Result roll(Operation *op, GraphBuilder &g) {
  FailureOr<SmallVector<int64_t>> shifts = g.getConstants(op->getOperand(1)), axes = g.getConstants(op->getOperand(2));
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(shifts) || failed(axes) || failed(shape) || shifts->size() != axes->size())
    return failure();
  Value x = op->getOperand(0);
  for (auto [shift, axis] : llvm::zip(*shifts, *axes)) {
    int64_t along = axis < 0 ? axis + static_cast<int64_t>(shape->size()) : axis;
    if (along < 0 || along >= static_cast<int64_t>(shape->size()) || !(*shape)[along].isConstant())
      return g.fail("the size of an axis that is rolled is not known");
    int64_t size = (*shape)[along].getConstant(), by = size ? ((shift % size) + size) % size : 0;
    if (by)
      x = g.concat({g.slice(x, along, size - by, by), g.slice(x, along, 0, size - by)}, along);
  }
  return one(g, x == op->getOperand(0) ? g.make<IdentityOp>(x) : x);
}

/// Row by row, the first so many elements backwards.
Result reverseSequence(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), lengths = op->getOperand(1);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return failure();
  int64_t rank = shape->size(), seq = getNumber(op, "seq_dim"), batch = getNumber(op, "batch_dim");
  seq = seq < 0 ? seq + rank : seq;
  batch = batch < 0 ? batch + rank : batch;
  SmallVector<int64_t> there = {batch, seq};
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != batch && axis != seq)
      there.push_back(axis);
  if (!isPermutationVector(there))
    return g.fail("seq_dim and batch_dim are not two of its operand's axes");
  x = g.transpose(x, there);
  Type index = g.elementOf(lengths);
  Value at = g.positions(x, 1, index), length = g.expandDims(lengths, 1);
  Value from = g.select(g.less(at, length), g.sub(g.sub(length, g.scalar(index, 1)), at), at);
  return one(g, g.transpose(g.gather(x, from, 1, /*batchDims=*/1), invertPermutationVector(there)));
}

/// Of images or volumes: a window along each axis but the first and the last.
Result extractImagePatches(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(images);
  const int64_t rank = llvm::isa<ExtractVolumePatchesOp>(op) ? 5 : 4;
  if (failed(shape) || static_cast<int64_t>(shape->size()) != rank ||
      llvm::any_of(ArrayRef(*shape).slice(1, rank - 2), [](Dim size) { return !size.isConstant(); }))
    return g.fail("the size of the images is not known");
  if (failed(checkWindowAttributes(op, g, rank)))
    return failure();
  auto entry = [&](StringRef name, int64_t axis) { return shapes::getArrayEntry(op, name, axis, 1); };
  int64_t taps = 1;
  for (int64_t axis = 1; axis + 1 < rank; ++axis)
    if ((taps *= entry("ksizes", axis)) > kMostTaps)
      return g.fail("its window has more than " + Twine(kMostTaps) + " elements");
  SmallVector<int64_t> sizes(1);
  for (int64_t axis = 1; axis + 1 < rank; ++axis) {
    auto window = shapes::resolveWindow((*shape)[axis], entry("ksizes", axis), entry("strides", axis),
                                        entry("rates", axis), getText(op, "padding"));
    images = g.padAxis(images, axis, window.before, window.after);
    sizes.push_back(window.size.getConstant());
  }
  // Of the axes so far what each of their taps is of.
  SmallVector<Value> parts = {images};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) {
    SmallVector<Value> next;
    for (Value part : parts)
      for (int64_t tap = 0; tap < entry("ksizes", axis); ++tap)
        next.push_back(g.slice(part, axis, tap * entry("rates", axis), sizes[axis], entry("strides", axis)));
    parts = std::move(next);
  }
  Value patches = g.concat(parts, rank - 1);
  return one(g, patches == op->getOperand(0) ? g.make<IdentityOp>(patches) : patches);
}

Result conjugateTranspose(Operation *op, GraphBuilder &g) { return one(g, g.make<TransposeOp>(op->getOperands())); }

// ---- Numbers -------------------------------------------------------------------------------------------

Result linSpace(Operation *op, GraphBuilder &g) {
  FailureOr<int64_t> count = g.getConstant(op->getOperand(2));
  if (failed(count))
    return failure();
  Value start = op->getOperand(0), stop = op->getOperand(1);
  Type element = g.elementOf(start);
  if (*count == 1)
    return one(g, g.reshape(start, {Dim(1)}));
  Value at = g.make<RangeOp>({g.integer(0), g.integer(*count), g.integer(1)});
  Value step = g.div(g.sub(stop, start), g.scalar(element, static_cast<double>(*count - 1)));
  Value points = g.add(start, g.mul(g.cast(at, element), step));
  return one(g, g.select(g.equal(at, g.integer(*count - 1)), stop, points));
}

/// Of each size the operand that it is of: one of 1 gives way. Sizes of the batch are taken as they are.
Result broadcastArgs(Operation *op, GraphBuilder &g) {
  Value longer = op->getOperand(0), shorter = op->getOperand(1);
  std::optional<Dims> x = g.shapes.getElements(longer), y = g.shapes.getElements(shorter);
  if (!x || !y)
    return g.fail("the sizes that are broadcast are not known");
  if (x->size() < y->size()) {
    std::swap(longer, shorter);
    std::swap(x, y);
  }
  const size_t lead = x->size() - y->size();
  SmallVector<bool> ofLonger;
  bool isShorter = lead == 0;
  for (auto [axis, size] : llvm::enumerate(*x)) {
    const bool is = axis < lead || size == (*y)[axis - lead] || (*y)[axis - lead] == Dim(1);
    if (!is && !(size == Dim(1)))
      return g.fail("the sizes that are broadcast are not known");
    ofLonger.push_back(is);
    isShorter &= !is || (axis >= lead && size == (*y)[axis - lead]);
  }
  if (llvm::all_of(ofLonger, [](bool is) { return is; }))
    return one(g, longer);
  if (isShorter)
    return one(g, shorter);
  SmallVector<Value> sizes;
  for (auto [axis, is] : llvm::enumerate(ofLonger)) {
    Value size = g.slice(is ? longer : shorter, 0, static_cast<int64_t>(is ? axis : axis - lead), 1);
    sizes.push_back(g.reshape(size, ArrayRef<Dim>()));
  }
  return one(g, g.pack(sizes, 0));
}

/// Operands: a tensor, the rows that are changed, what they become or are changed by. Rows are counted around.
Result inplaceRows(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), rows = op->getOperand(1), values = op->getOperand(2);
  FailureOr<Dims> at = g.getShape(rows);
  if (failed(at))
    return failure();
  if (at->empty()) {
    rows = g.reshape(rows, {Dim(1)});
    values = g.expandDims(values, 0);
  }
  Value places = g.expandDims(g.make<FloorModOp>({rows, g.sizeOf(x, 0, g.elementOf(rows))}), 1);
  if (llvm::isa<InplaceUpdateOp>(op))
    return one(g, g.make<TensorScatterUpdateOp>({x, places, values}));
  if (llvm::isa<InplaceAddOp>(op))
    return one(g, g.make<TensorScatterAddOp>({x, places, values}));
  return one(g, g.make<TensorScatterSubOp>({x, places, values}));
}

/// Operands: a tensor, begin, end and strides of a slice, what it becomes. The same slice of the numbers of elements
/// says which they are. An axis in front that is taken whole, as the batch's is, need not be known.
Result stridedSliceUpdate(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), values = op->getOperand(4);
  FailureOr<Dims> shape = g.getShape(x);
  FailureOr<SmallVector<int64_t>> begin = g.getConstants(op->getOperand(1)), end = g.getConstants(op->getOperand(2)),
                                  strides = g.getConstants(op->getOperand(3));
  if (failed(shape) || failed(begin) || failed(end) || failed(strides))
    return failure();
  const StringRef masks[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
  auto isSet = [&](StringRef mask) { return (getNumber(op, mask) & 1) != 0; };
  const bool isWhole = !shape->empty() && !begin->empty() && strides->front() == 1 && isSet("begin_mask") &&
                       isSet("end_mask") && getNumber(op, "ellipsis_mask") == 0 && !isSet("new_axis_mask") &&
                       !isSet("shrink_axis_mask");
  const size_t lead = isWhole ? 1 : 0;
  SmallVector<int64_t> sizes;
  int64_t count = 1;
  for (Dim size : ArrayRef(*shape).drop_front(lead)) {
    if (!size.isConstant() || llvm::MulOverflow(count, size.getConstant(), count))
      return g.fail("the size of what is sliced is not known");
    sizes.push_back(size.getConstant());
  }
  SmallVector<NamedAttribute> attributes;
  for (StringRef mask : masks)
    attributes.push_back(g.attribute(mask, g.builder.getI64IntegerAttr(getNumber(op, mask) >> lead)));
  auto rest = [&](ArrayRef<int64_t> numbers) { return g.integers(numbers.drop_front(lead)); };
  Value numbers = g.make<RangeOp>({g.integer(0), g.integer(count), g.integer(1)});
  Value taken = g.make<StridedSliceOp>(
      {g.reshape(numbers, SmallVector<Dim>(sizes.begin(), sizes.end())), rest(*begin), rest(*end), rest(*strides)},
      attributes);
  if (g.failed())
    return failure();
  FailureOr<Dims> slice = g.getShape(taken), given = g.getShape(values);
  if (failed(slice) || failed(given))
    return failure();
  Dims expected = *slice;
  if (isWhole)
    expected.insert(expected.begin(), shape->front());
  if (!shapes::fits(expected, *given))
    return g.fail("it puts " + shapes::print(*given) + " where the slice is " + shapes::print(expected));
  int64_t many = 1;
  for (Dim size : *slice)
    many *= size.getConstant();
  Value places = g.reshape(taken, {Dim(many), Dim(1)});
  if (!isWhole) {
    Value flat = g.make<TensorScatterUpdateOp>({g.reshape(x, {Dim(count)}), places, g.reshape(values, {Dim(many)})});
    return one(g, g.reshape(flat, *shape));
  }
  Value elements = g.transpose(g.reshape(x, {shape->front(), Dim(count)}), {1, 0});
  Value becomes = g.transpose(g.reshape(values, {shape->front(), Dim(many)}), {1, 0});
  Value updated = g.transpose(g.make<TensorScatterUpdateOp>({elements, places, becomes}), {1, 0});
  return one(g, g.reshape(updated, *shape));
}

/// Which axis of the destination's format each of the source's is; fails where they are not the same axes.
static FailureOr<SmallVector<int64_t>> mapAxes(Operation *op, GraphBuilder &g, StringRef from, StringRef to) {
  SmallVector<int64_t> map;
  for (char axis : from)
    map.push_back(static_cast<int64_t>(to.find(axis)));
  if (from.size() != to.size() || llvm::is_contained(map, -1) || !isPermutationVector(map))
    return g.fail("its formats are " + getText(op, "src_format") + " and " + getText(op, "dst_format"));
  return map;
}

Result dataFormatDimMap(Operation *op, GraphBuilder &g) {
  auto map = mapAxes(op, g, getText(op, "src_format"), getText(op, "dst_format"));
  if (failed(map))
    return failure();
  Value axes = op->getOperand(0);
  Type element = g.elementOf(axes);
  Value table = g.integers(*map, element.isInteger(64));
  Value at = g.make<FloorModOp>({axes, g.scalar(element, static_cast<double>(map->size()))});
  return one(g, g.gather(table, at, 0));
}

/// Sizes, or pairs of them, an axis a row; those of images alone have no rows for examples and channels.
Result dataFormatVecPermute(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return failure();
  if (shape->empty() || !shape->front().isConstant())
    return g.fail("the number of axes is not known");
  std::string from = getText(op, "src_format").str(), to = getText(op, "dst_format").str();
  if (shape->front().getConstant() + 2 == static_cast<int64_t>(from.size()))
    for (std::string *format : {&from, &to})
      llvm::erase_if(*format, [](char axis) { return axis == 'N' || axis == 'C'; });
  auto map = mapAxes(op, g, to, from);
  if (failed(map))
    return failure();
  if (shape->front().getConstant() != static_cast<int64_t>(map->size()))
    return g.fail("it takes " + shapes::print(*shape) + " for the axes " + from);
  return one(g, g.gather(x, g.integers(*map), 0));
}

} // namespace distc::dfg::decompositions

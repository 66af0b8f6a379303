//===- Layout.cpp - The same elements elsewhere ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/stablehlo/Converter.h"

using namespace mlir;

namespace distc::stablehlo {

/// The shape that the module says of a result, where it is static.
static std::optional<dfg::Dims> getStaticSizes(Operation *op) {
  auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  return dfg::Dims(type.getShape().begin(), type.getShape().end());
}

// ---- Broadcasts
// ------------------------------------------------------------------------------------------------------

Value Converter::withOtherOnes(Builder &g, Value x, Dims shape) {
  FailureOr<Dims> from = g.getShape(x);
  if (failed(from))
    return {};
  auto isOpen = [](Dim size) { return !size.isConstant(); };
  auto isNotOne = [](Dim size) { return !(size == Dim(1)); };
  // Of no elements a reshape finds no size at all.
  const int64_t most = llvm::is_contained(shape, Dim(0)) ? 0 : 1;
  if (llvm::count_if(shape, isOpen) <= most ||
      !llvm::equal(llvm::make_filter_range(*from, isNotOne), llvm::make_filter_range(shape, isNotOne)))
    return g.reshape(x, shape);
  Ints dropped;
  for (auto [axis, size] : llvm::enumerate(*from))
    if (!isNotOne(size))
      dropped.push_back(axis);
  if (!dropped.empty())
    x = g.make<dfg::SqueezeOp>({x}, g.attribute("squeeze_dims", g.builder.getI64ArrayAttr(dropped)));
  for (auto [axis, size] : llvm::enumerate(shape))
    if (!isNotOne(size))
      x = g.expandDims(x, axis);
  return x;
}

Value Converter::broadcastInDim(Builder &g, Value x, ArrayRef<int64_t> axes, Dims shape, Value sizes) {
  FailureOr<Dims> from = g.getShape(x);
  if (failed(from) || from->size() != axes.size())
    return (void)g.fail("its broadcast_dimensions do not name the axes of its operand"), Value();
  if (!sizes)
    sizes = llvm::all_of(shape, [](Dim size) { return size.isConstant(); })
                ? g.integers(llvm::map_to_vector(shape, [](Dim size) { return size.getConstant(); }))
                : g.sizes(shape, x);
  if (!llvm::is_sorted(axes)) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, axes.size()));
    llvm::sort(order, [&](int64_t a, int64_t b) { return axes[a] < axes[b]; });
    SmallVector<int64_t> sorted = llvm::map_to_vector(order, [&](int64_t i) { return axes[i]; });
    return broadcastInDim(g, g.transpose(x, order), sorted, shape, sizes);
  }
  Dims expanded(shape.size(), Dim(1));
  for (auto [axis, size] : llvm::zip(axes, *from)) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return (void)g.fail("its broadcast_dimensions name an axis that the result does not have"), Value();
    expanded[axis] = size;
  }
  if (from->empty() && !shape.empty()) {
    Value filled = g.make<dfg::FillOp>({sizes, x}, {}, Builder::elementOf(x));
    narrowed[filled] = x;
    return filled;
  }
  Value wide = expanded.size() == from->size() ? x : withOtherOnes(g, x, expanded);
  if (expanded == shape)
    return wide;
  Value result = g.make<dfg::BroadcastToOp>({wide, sizes});
  narrowed[result] = wide;
  return result;
}

Converter::Result Converter::broadcastInDim(Operation *op, Values operands, Builder &g) {
  std::optional<Dims> shape = getStaticSizes(op);
  if (!shape)
    return fail(g, "has a result of unknown size");
  return one(g, broadcastInDim(g, operands[0], getInts(op, "broadcast_dimensions"), *shape, Value()));
}

Converter::Result Converter::dynamicBroadcastInDim(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> shape = getSizes(operands[1], g);
  if (failed(shape))
    return failure();
  return one(g, broadcastInDim(g, operands[0], getInts(op, "broadcast_dimensions"), *shape, operands[1]));
}

// ---- Reshapes -------------------------------------------------------------------------------------------------------

Converter::Result Converter::reshapeStatic(Operation *op, Values operands, Builder &g) {
  std::optional<Dims> shape = getStaticSizes(op);
  if (!shape)
    return fail(g, "has a result of unknown size");
  return one(g, g.reshape(operands[0], *shape));
}

Converter::Result Converter::dynamicReshape(Operation *, Values operands, Builder &g) {
  FailureOr<Dims> shape = getSizes(operands[1], g);
  if (failed(shape))
    return failure();
  FailureOr<Dims> from = g.getShape(operands[0]);
  if (failed(from))
    return failure();
  if (*from == *shape)
    return operands.front() ? one(g, operands[0]) : Result(failure());
  return one(g, withOtherOnes(g, operands[0], *shape));
}

Converter::Result Converter::transpose(Operation *op, Values operands, Builder &g) {
  Ints permutation = getInts(op, "permutation");
  // A gradient of weights comes as a product that is turned: the product of the turned ones is no copy.
  if (auto product = operands[0].getDefiningOp<dfg::MatMulOp>(); product && permutation == Ints{1, 0})
    return one(g, g.matMul(product.getB(), product.getA(), !product.getTransposeB(), !product.getTransposeA()));
  return one(g, g.transpose(operands[0], permutation));
}

Converter::Result Converter::concatenate(Operation *op, Values operands, Builder &g) {
  return one(g, g.concat(operands, getInt(op, "dimension")));
}

Converter::Result Converter::reverse(Operation *op, Values operands, Builder &g) {
  Ints axes = getInts(op, "dimensions");
  return one(g, axes.empty() ? operands[0] : g.make<dfg::ReverseV2Op>({operands[0], g.integers(axes)}));
}

// ---- Padding and cutting -------------------------------------------------------------------------------------------

Value Converter::padAll(Builder &g, Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior,
                        Value value) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return {};
  size_t rank = shape->size();
  if (low.size() != rank || high.size() != rank || interior.size() != rank ||
      llvm::any_of(interior, [](int64_t count) { return count < 0; }))
    return (void)g.fail("does not say how each axis is padded"), Value();
  for (size_t axis = 0; axis < rank; ++axis) {
    if (interior[axis] == 0)
      continue;
    Dim size = (*shape)[axis];
    if (!size.isConstant())
      return (void)g.fail("puts elements between the examples of the batch"), Value();
    int64_t count = size.getConstant(), step = interior[axis] + 1;
    if (count <= 1)
      continue;
    (*shape)[axis] = Dim(count * step);
    x = g.reshape(g.padAxis(g.expandDims(x, axis + 1), axis + 1, 0, step - 1, value), *shape);
    x = g.slice(x, axis, 0, count * step - interior[axis]);
    (*shape)[axis] = Dim(count * step - interior[axis]);
  }
  SmallVector<int64_t> paddings;
  for (size_t axis = 0; axis < rank; ++axis) {
    paddings.push_back(std::max<int64_t>(low[axis], 0));
    paddings.push_back(std::max<int64_t>(high[axis], 0));
  }
  x = g.pad(x, paddings, value);
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t before = std::max<int64_t>(-low[axis], 0), behind = std::max<int64_t>(-high[axis], 0);
    if (before == 0 && behind == 0)
      continue;
    Dim size = (*shape)[axis] + Dim(paddings[2 * axis] + paddings[2 * axis + 1]);
    if (!size.isConstant())
      return (void)g.fail("cuts examples off the batch"), Value();
    x = g.slice(x, axis, before, size.getConstant() - before - behind);
  }
  return x;
}

Converter::Result Converter::pad(Operation *op, Values operands, Builder &g) {
  Value value = isIdentity(op->getOperand(1), Combination::Add) ? Value() : operands[1];
  return one(g, padAll(g, operands[0], getInts(op, "edge_padding_low"), getInts(op, "edge_padding_high"),
                       getInts(op, "interior_padding"), value));
}

/// `x` with as many rows of `value` before and behind as the sizes of `paddings` say, of which some depend on the
/// batch. `lists`: these sizes as values, where `x` may have no axis that says how large the batch is.
Converter::Result Converter::padByBatch(Builder &g, Value x, ArrayRef<Dims> paddings, Value value,
                                        ArrayRef<Value> lists) {
  for (size_t axis = 0, rank = paddings[0].size(); axis < rank; ++axis) {
    const Dim before = paddings[0][axis], behind = paddings[1][axis];
    FailureOr<Dims> shape = g.getShape(x);
    if (failed(shape) || shape->size() != rank)
      return failure();
    if (!(paddings[2][axis] == Dim(0)))
      return fail(g, "puts elements between others where its padding depends on the batch");
    const Dim size = (*shape)[axis], whole = before + size + behind;
    if (!whole.isKnown())
      return fail(g, "pads by what depends on data");
    auto fill = [&](Dim rows) {
      Dims sizes(*shape);
      sizes[axis] = rows;
      return g.make<dfg::FillOp>({g.sizes(sizes, x), value}, {}, Builder::elementOf(x));
    };
    if (before == Dim(0) && behind == Dim(0))
      continue;
    if (size.isConstant() && whole.dependsOnBatch()) {
      // Some examples among those of the batch, at a number from its beginning or its end.
      const Dim from = before.isConstant() ? before : behind;
      if (!from.isConstant() || from.getConstant() < 0)
        return fail(g, "puts examples into the midst of the batch");
      Value all;
      if (lists.empty() || llvm::any_of(*shape, [](Dim each) { return !each.isConstant(); })) {
        all = fill(whole);
      } else {
        Values sizes = llvm::map_to_vector(*shape, [&](Dim each) { return g.integer(each.getConstant()); });
        for (Value list : lists.take_front(2))
          sizes[axis] = g.add(sizes[axis], g.cast(g.reshape(g.slice(list, 0, axis, 1), {}), g.builder.getI32Type()));
        all = g.make<dfg::FillOp>({g.pack(sizes, 0), value}, {}, Builder::elementOf(x));
      }
      Values update = {all, x};
      Value start = g.integer(from.getConstant());
      if (!before.isConstant())
        start = g.sub(g.sizeOf(update[0], axis, g.builder.getI32Type()),
                      g.integer(behind.getConstant() + size.getConstant()));
      for (size_t each = 0; each < rank; ++each)
        update.push_back(each == axis ? start : g.integer(0));
      Result updated = dynamicUpdateSlice(nullptr, update, g);
      if (failed(updated))
        return failure();
      x = updated->front();
      continue;
    }
    if ((before.isConstant() && before.getConstant() < 0) || (behind.isConstant() && behind.getConstant() < 0))
      return fail(g, "cuts examples off the batch");
    Values parts;
    auto addRows = [&](Dim rows) {
      if (rows == Dim(0))
        return;
      // Batch by batch, so that replicas' parts alternate as those of what is added to it do.
      const bool isBatches = rows.isMultipleOfBatch() && rows.getScale() > 0;
      const int64_t multiple = dfg::getBatchMultiple(graph), each = rows.getScale() % multiple == 0 ? multiple : 1;
      parts.append(isBatches ? rows.getScale() / each : 1, fill(isBatches ? Dim::batch(each) : rows));
    };
    addRows(before);
    parts.push_back(x);
    addRows(behind);
    x = g.concat(parts, axis);
  }
  return one(g, x);
}

Converter::Result Converter::dynamicPad(Operation *op, Values operands, Builder &g) {
  if (!llvm::all_of(ArrayRef(operands).drop_front(2), [&](Value list) { return shapes.getConstants(list); })) {
    SmallVector<Dims> sizes;
    for (Value operand : ArrayRef(operands).drop_front(2)) {
      FailureOr<Dims> list = getSizes(operand, g);
      if (failed(list))
        return failure();
      sizes.push_back(*list);
    }
    return padByBatch(g, operands[0], sizes, operands[1], ArrayRef(operands).drop_front(2));
  }
  Ints paddings[3];
  for (auto [list, operand] : llvm::zip(paddings, ArrayRef(operands).drop_front(2))) {
    auto known = g.getConstants(operand);
    if (failed(known))
      return failure();
    list = *known;
  }
  Value value = isIdentity(op->getOperand(1), Combination::Add) ? Value() : operands[1];
  return one(g, padAll(g, operands[0], paddings[0], paddings[1], paddings[2], value));
}

Value Converter::stridedSlice(Builder &g, Value x, ArrayRef<int64_t> begin, ArrayRef<Dim> limit,
                              ArrayRef<int64_t> strides) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return {};
  if (begin.size() != shape->size() || limit.size() != shape->size() || strides.size() != shape->size())
    return (void)g.fail("does not say what is taken of each axis"), Value();
  // The first of the examples where all are the same: what was broadcast to them, as that of one.
  if (auto it = narrowed.find(x); it != narrowed.end()) {
    FailureOr<Dims> from = g.getShape(it->second);
    Dims taken(*shape);
    if (succeeded(from) && from->size() == shape->size())
      for (auto [axis, size] : llvm::enumerate(*from))
        if (size == Dim(1) && begin[axis] == 0 && limit[axis] == Dim(1) && !taken[axis].isConstant())
          taken[axis] = Dim(1);
    if (!(taken == *shape)) {
      x = broadcastInDim(g, it->second, llvm::to_vector(llvm::seq<int64_t>(0, taken.size())), taken, Value());
      shape = taken;
    }
  }
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    Dim size = (*shape)[axis];
    if (begin[axis] == 0 && strides[axis] == 1 && limit[axis] == size)
      continue;
    const Dim end = limit[axis];
    if (begin[axis] < 0 || strides[axis] < 1 || (end.isConstant() && begin[axis] > end.getConstant()) ||
        (end.isConstant() && size.isConstant() && end.getConstant() > size.getConstant()))
      return (void)g.fail("takes what is outside of its operand"), Value();
    if (end.isConstant() && !size.isConstant()) {
      // A batch may have fewer for all that a slice knows, which ends where its operand does.
      Ints rows;
      for (int64_t row = begin[axis]; row < end.getConstant(); row += strides[axis])
        rows.push_back(row);
      x = g.gather(x, g.integers(rows), axis);
    } else {
      x = g.sliceTo(x, axis, begin[axis], end, strides[axis]);
    }
    if (!x)
      return {};
  }
  return x;
}

Converter::Result Converter::slice(Operation *op, Values operands, Builder &g) {
  Ints limits = getInts(op, "limit_indices");
  return one(g, stridedSlice(g, operands[0], getInts(op, "start_indices"), Dims(limits.begin(), limits.end()),
                             getInts(op, "strides")));
}

/// Whether a slice begins or ends among the examples, but for some at the ends.
static bool isSliceOfSegments(ArrayRef<dfg::Dim> shape, ArrayRef<dfg::Dim> begin, ArrayRef<dfg::Dim> limit) {
  auto isKnown = [](dfg::Dim size) { return size.isKnown(); };
  return begin.size() == shape.size() && limit.size() == shape.size() && llvm::all_of(begin, isKnown) &&
         llvm::all_of(limit, isKnown) && llvm::any_of(llvm::zip(shape, begin, limit), [](auto each) {
           auto [size, from, to] = each;
           return !from.isConstant() || (!to.isConstant() && !(size - to).isConstant());
         });
}

Converter::Result Converter::realDynamicSlice(Operation *op, Values operands, Builder &g) {
  std::optional<Dims> first = shapes.getElements(operands[1]), last = shapes.getElements(operands[2]);
  FailureOr<Dims> whole = g.getShape(operands[0]);
  if (first && last && succeeded(whole) && first->size() == whole->size() && last->size() == whole->size() &&
      shapes.getConstants(operands[3]) == SmallVector<int64_t>(whole->size(), 1)) {
    // Some of the last examples: by number, where the batch has as many.
    Dims sizes;
    for (auto [size, from, to] : llvm::zip(*whole, *first, *last)) {
      const Dim taken = to - from;
      if (from == Dim(0) && to == size)
        sizes.push_back(-1);
      else if (taken.isConstant() && taken.getConstant() >= 0)
        sizes.push_back(taken);
    }
    if (!shapes.getConstants(operands[1]) && sizes.size() == whole->size()) {
      Values starts;
      for (size_t axis = 0; axis < whole->size(); ++axis)
        starts.push_back(g.reshape(g.slice(operands[1], 0, axis, 1), {}));
      return takeSlice(g, operands[0], starts, sizes);
    }
  }
  if (first && last && succeeded(whole) && isSliceOfSegments(*whole, *first, *last))
    return one(g, g.make<dfg::StridedSliceOp>(operands));
  if (!shapes.getConstants(operands[1])) {
    // From where a loop's counter or data say: what is taken is as long as the module says.
    FailureOr<Dims> shape = g.getShape(operands[0]);
    auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    FailureOr<Ints> strides = g.getConstants(operands[3]);
    if (failed(shape) || failed(strides) || !type || type.getRank() != static_cast<int64_t>(shape->size()))
      return failure();
    if (llvm::any_of(*strides, [](int64_t stride) { return stride != 1; }))
      return fail(g, "takes every so many-th element from where data say");
    // So many from there on, or an end that is known.
    auto sum = operands[2].getDefiningOp<dfg::AddV2Op>();
    std::optional<Dims> counts;
    for (unsigned side : {0, 1})
      if (sum && sum->getOperand(side) == operands[1])
        counts = shapes.getElements(sum->getOperand(1 - side));
    Dims sizes;
    for (auto [axis, size] : llvm::enumerate(*shape)) {
      std::optional<Dims> begin = shapes.getElements(operands[1]), limit = shapes.getElements(operands[2]);
      bool isAll = begin && limit && (*begin)[axis] == Dim(0) && (*limit)[axis] == size;
      if (!isAll && type.isDynamicDim(axis) && counts && counts->size() == shape->size() &&
          (*counts)[axis].isMultipleOfBatch() && (size - (*counts)[axis]).growsWithBatch() &&
          (size - (*counts)[axis]).getSmallest() >= 0) {
        sizes.push_back((*counts)[axis]);
        continue;
      }
      if (!isAll && type.isDynamicDim(axis))
        return fail(
            g, "takes some of the examples of the batch; take them by number: x[(jnp.arange(n) + k) % n] in place of "
               "jnp.roll(x, -k, 0), and of x[k:] with weights that are zero for the last");
      sizes.push_back(isAll ? Dim(-1) : Dim(type.getDimSize(axis)));
    }
    Values starts;
    for (size_t axis = 0; axis < shape->size(); ++axis)
      starts.push_back(g.reshape(g.slice(operands[1], 0, axis, 1), {}));
    return takeSlice(g, operands[0], starts, sizes);
  }
  FailureOr<Ints> begin = g.getConstants(operands[1]), strides = g.getConstants(operands[3]);
  FailureOr<Dims> limit = getSizes(operands[2], g);
  if (failed(begin) || failed(limit) || failed(strides))
    return failure();
  return one(g, stridedSlice(g, operands[0], *begin, *limit, *strides));
}

// ---- Positions and sizes
// ---------------------------------------------------------------------------------------------

Value Converter::iota(Builder &g, Dims shape, int64_t axis, Type element, Value sizes) {
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return (void)g.fail("counts along an axis that it does not have"), Value();
  Value count;
  if (shape[axis].isConstant())
    count = g.integer(shape[axis].getConstant());
  else
    count = g.cast(g.make<dfg::StridedSliceOp>({sizes, g.integers({axis}), g.integers({axis + 1}), g.integers({1})},
                                               g.attribute("shrink_axis_mask", g.builder.getI64IntegerAttr(1))),
                   g.builder.getI32Type());
  Value range = g.cast(g.make<dfg::RangeOp>({g.integer(0), count, g.integer(1)}), element);
  return broadcastInDim(g, range, {axis}, shape, sizes);
}

Converter::Result Converter::iota(Operation *op, Values, Builder &g) {
  std::optional<Dims> shape = getStaticSizes(op);
  if (!shape)
    return fail(g, "has a result of unknown size");
  return one(g, iota(g, *shape, getInt(op, "iota_dimension"), elementOfResult(op), Value()));
}

Converter::Result Converter::dynamicIota(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> shape = getSizes(operands[0], g);
  if (failed(shape))
    return failure();
  return one(g, iota(g, *shape, getInt(op, "iota_dimension"), elementOfResult(op), operands[0]));
}

Converter::Result Converter::dimensionSize(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> shape = g.getShape(operands[0]);
  int64_t axis = getInt(op, "dimension");
  if (failed(shape) || axis < 0 || axis >= static_cast<int64_t>(shape->size()))
    return fail(g, "asks for the size of an axis that does not exist");
  return one(g, g.sizeOf(operands[0], axis, elementOfResult(op)));
}

} // namespace distc::stablehlo

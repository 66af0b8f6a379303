//===- Sparse.cpp - Sparse tensors: places, values and a shape ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>
#include <map>

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// The element of a vector.
Value elementAt(GraphBuilder &g, Value vector, int64_t at) {
  return g.make<StridedSliceOp>({vector, g.integers({at}), g.integers({at + 1}), g.integers({1})},
                                g.attribute("shrink_axis_mask", g.builder.getI64IntegerAttr(1)));
}

/// A sparse tensor: the place of each value, a row, and the shape, all of int64.
struct Sparse {
  GraphBuilder &g;
  Value places, values, shape;
  Dim count;
  int64_t rank;

  /// Of three operands, the first of which is `first`.
  static FailureOr<Sparse> of(Operation *op, GraphBuilder &g, unsigned first = 0) {
    return of(g, op->getOperand(first), op->getOperand(first + 1), op->getOperand(first + 2));
  }
  static FailureOr<Sparse> of(GraphBuilder &g, Value places, Value values, Value shape) {
    FailureOr<Dims> sizes = g.getShape(places);
    if (failed(sizes) || sizes->size() != 2 || !(*sizes)[1].isConstant())
      return g.fail("the number of axes of a sparse tensor is not known");
    return Sparse{g, places, values, shape, (*sizes)[0], (*sizes)[1].getConstant()};
  }
  /// A coordinate of all places.
  Value column(int64_t axis) const { return g.reshape(g.slice(places, 1, axis, 1), {count}); }
  Value sizeAt(int64_t axis) const { return elementAt(g, shape, axis); }
  /// The coordinates along `axes`, as places of a tensor of those axes alone.
  Value columns(ArrayRef<int64_t> axes) const {
    return g.concat(llvm::map_to_vector(axes, [&](int64_t axis) { return g.slice(places, 1, axis, 1); }), 1);
  }
  Value sizesAt(ArrayRef<int64_t> axes) const {
    return g.pack(llvm::map_to_vector(axes, [&](int64_t axis) { return sizeAt(axis); }), 0);
  }
  /// Where each place is in a row-major tensor of the axes from `begin` to `end`.
  Value number(int64_t begin, int64_t end) const {
    Value at = column(begin);
    for (int64_t axis = begin + 1; axis < end; ++axis)
      at = g.add(g.mul(at, sizeAt(axis)), column(axis));
    return at;
  }
  /// In row-major order, equal places as they were.
  FailureOr<Sparse> ordered() const {
    if (!count.isKnown() || count.isBound())
      return g.fail("how many values a sparse tensor has depends on the data, so that they are not put in order");
    // The largest first, of equal ones the first.
    Type i32 = g.builder.getI32Type();
    Value key = g.neg(number(0, rank));
    auto sorted = g.makeAll<TopKV2Op>({key, g.sizeOf(places, 0, i32)}, {g.elementOf(key), i32}, g.flag("sorted", true));
    return Sparse{g, g.gather(places, sorted[1], 0), g.gather(values, sorted[1], 0), shape, count, rank};
  }
};

/// Axes in order, those from the end too; all where none is named.
FailureOr<SmallVector<int64_t>> getReducedAxes(GraphBuilder &g, Value axes, int64_t rank) {
  FailureOr<SmallVector<int64_t>> named = g.getConstants(axes);
  if (failed(named))
    return failure();
  SmallVector<int64_t> reduced;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (named->empty() || llvm::is_contained(*named, axis) || llvm::is_contained(*named, axis - rank))
      reduced.push_back(axis);
  for (int64_t axis : *named)
    if (axis < -rank || axis >= rank)
      return g.fail("it reduces axis " + Twine(axis) + " of " + Twine(rank));
  return reduced;
}

} // namespace

/// Operands: places, values, shape, axes.
Result sparseReduce(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g);
  if (failed(x))
    return failure();
  FailureOr<SmallVector<int64_t>> reduced = getReducedAxes(g, op->getOperand(3), x->rank);
  if (failed(reduced))
    return failure();
  SmallVector<int64_t> kept;
  for (int64_t axis = 0; axis < x->rank; ++axis)
    if (!llvm::is_contained(*reduced, axis))
      kept.push_back(axis);
  Type element = g.elementOf(x->values);
  Value result;
  if (llvm::isa<SparseReduceSumOp>(op)) {
    result = kept.empty() ? g.sum(x->values, {0})
                          : g.make<ScatterNdOp>({x->columns(kept), x->values, x->sizesAt(kept)}, {}, element);
  } else {
    // What no value is of is 0.
    if (!llvm::isa<FloatType>(element))
      return g.fail("there is no largest of elements of its type");
    Value lowest = g.scalar(element, -std::numeric_limits<double>::infinity()), zero = g.scalar(element, 0);
    Value ones = g.make<OnesLikeOp>(x->values), count;
    if (kept.empty()) {
      result = g.reduce(MaxOp::getOperationName(), x->values, {0}, false);
      count = g.sum(ones, {0});
    } else {
      Value base = g.make<FillOp>({x->sizesAt(kept), lowest}, {}, element), places = x->columns(kept);
      result = g.make<TensorScatterMaxOp>({base, places, x->values});
      count = g.make<ScatterNdOp>({places, ones, x->sizesAt(kept)}, {}, element);
    }
    result = g.select(g.less(zero, count), result, zero);
  }
  if (getFlag(op, "keep_dims"))
    for (int64_t axis : *reduced)
      result = g.expandDims(result, axis);
  return one(g, result);
}

/// Operands: places, values, shape, a dense tensor that broadcasts to it. Gives values.
Result sparseWithDense(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g);
  Value dense = op->getOperand(3);
  FailureOr<Dims> sizes = g.getShape(dense);
  if (failed(x) || failed(sizes))
    return failure();
  const int64_t lead = x->rank - static_cast<int64_t>(sizes->size());
  if (lead < 0)
    return g.fail("its dense operand has more axes than the sparse one");
  SmallVector<int64_t> axes;
  Dims named;
  std::optional<Dims> shape = g.shapes.getElements(x->shape);
  for (auto [axis, size] : llvm::enumerate(*sizes)) {
    if (!size.isKnown())
      return g.fail("the shape of its dense operand is not known");
    if (size == Dim(1))
      continue;
    if (shape && (*shape)[lead + axis].isKnown() && !((*shape)[lead + axis] == size))
      return g.fail("its dense operand of shape " + shapes::print(*sizes) + " does not broadcast to " +
                    shapes::print(*shape));
    axes.push_back(lead + static_cast<int64_t>(axis));
    named.push_back(size);
  }
  Value other = axes.empty() ? g.reshape(dense, {}) : g.make<GatherNdOp>({g.reshape(dense, named), x->columns(axes)});
  return one(g, llvm::TypeSwitch<Operation *, Value>(op)
                    .Case<SparseDenseCwiseAddOp>([&](auto) { return g.add(x->values, other); })
                    .Case<SparseDenseCwiseMulOp>([&](auto) { return g.mul(x->values, other); })
                    .Default([&](Operation *) { return g.make<DivOp>({x->values, other}); }));
}

/// Operands: places, values, shape, a dense tensor of that shape, to which the values are added.
Result sparseTensorDenseAdd(Operation *op, GraphBuilder &g) {
  Value dense = op->getOperand(3);
  return one(g, g.make<TensorScatterAddOp>({dense, op->getOperand(0), op->getOperand(1)}));
}

/// Operands: places, values, shape. Of the values of a row, which all axes but the last name.
Result sparseSoftmax(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g);
  if (failed(x))
    return failure();
  if (x->rank < 2)
    return g.fail("its rows are those of two axes or more");
  Value row = x->number(0, x->rank - 1), rows = x->sizeAt(0);
  for (int64_t axis = 1; axis + 1 < x->rank; ++axis)
    rows = g.mul(rows, x->sizeAt(axis));
  Value largest = g.gather(g.make<UnsortedSegmentMaxOp>({x->values, row, rows}), row, 0);
  Value weights = g.exp(g.sub(x->values, largest));
  return one(g, g.div(weights, g.gather(g.segmentSum(weights, row, rows), row, 0)));
}

/// Operands: places, values, shape.
Result sparseReorder(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g);
  if (failed(x))
    return failure();
  FailureOr<Sparse> ordered = x->ordered();
  if (failed(ordered) || g.failed())
    return failure();
  return SmallVector<Value>{ordered->places, ordered->values};
}

/// Operands: the places of all, then the values, then the shapes.
Result sparseConcat(Operation *op, GraphBuilder &g) {
  const unsigned count = op->getNumOperands() / 3;
  SmallVector<Value> places, values;
  Value before; // the rows of those in front
  Value shape;
  int64_t axis = getNumber(op, "concat_dim");
  for (unsigned i = 0; i < count; ++i) {
    FailureOr<Sparse> x = Sparse::of(g, op->getOperand(i), op->getOperand(count + i), op->getOperand(2 * count + i));
    if (failed(x))
      return failure();
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis >= x->rank)
      return g.fail("it joins sparse tensors of " + Twine(x->rank) + " axes along axis " + Twine(axis));
    SmallVector<Value> columns;
    for (int64_t at = 0; at < x->rank; ++at) {
      Value column = g.slice(x->places, 1, at, 1);
      columns.push_back(at == axis && before ? g.add(column, before) : column);
    }
    places.push_back(g.concat(columns, 1));
    values.push_back(x->values);
    before = before ? g.add(before, x->sizeAt(axis)) : x->sizeAt(axis);
    if (i + 1 == count) {
      SmallVector<Value> sizes;
      for (int64_t at = 0; at < x->rank; ++at)
        sizes.push_back(at == axis ? before : x->sizeAt(at));
      shape = g.pack(sizes, 0);
    }
  }
  FailureOr<Sparse> joined = Sparse::of(g, g.concat(places, 0), g.concat(values, 0), shape);
  if (failed(joined))
    return failure();
  FailureOr<Sparse> ordered = joined->ordered();
  if (failed(ordered) || g.failed())
    return failure();
  return SmallVector<Value>{ordered->places, ordered->values, shape};
}

namespace {

/// Places that two sparse tensors have together, in order, and which of them those of each are. Only of places that are
/// constants: how many there are follows from them.
struct Union {
  std::map<SmallVector<int64_t>, int64_t> places;
  SmallVector<int64_t> numbers[2];

  static FailureOr<Union> of(GraphBuilder &g, Value a, Value b) {
    Union all;
    SmallVector<SmallVector<int64_t>> each[2];
    const Value both[] = {a, b};
    for (auto [side, value] : llvm::enumerate(both)) {
      DenseIntElementsAttr known;
      if (!matchPattern(value, m_Constant(&known)) || known.getType().getRank() != 2)
        return g.fail("it adds sparse tensors whose places are no constants, so that how many there are is not known");
      const int64_t rank = known.getType().getDimSize(1);
      auto flat = llvm::map_to_vector(known.getValues<APInt>(), [](const APInt &at) { return at.getSExtValue(); });
      for (int64_t row = 0; row < known.getType().getDimSize(0); ++row) {
        ArrayRef<int64_t> place = ArrayRef(flat).slice(row * rank, rank);
        each[side].emplace_back(place);
        all.places.try_emplace(SmallVector<int64_t>(place), 0);
      }
    }
    for (auto [number, entry] : llvm::enumerate(all.places))
      entry.second = static_cast<int64_t>(number);
    for (unsigned side : {0, 1})
      all.numbers[side] = llvm::map_to_vector(each[side], [&](const auto &place) { return all.places.at(place); });
    return all;
  }
};

} // namespace

/// Operands: places, values and shape of two sparse tensors, how large a sum must be that is kept.
Result sparseAdd(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> a = Sparse::of(op, g), b = Sparse::of(op, g, 3);
  if (failed(a) || failed(b))
    return failure();
  FailureOr<Union> all = Union::of(g, a->places, b->places);
  if (failed(all))
    return failure();
  Attribute least;
  auto isZero = [](Attribute value) {
    if (auto floats = llvm::dyn_cast<DenseFPElementsAttr>(value))
      return floats.isSplat() && floats.getSplatValue<APFloat>().isZero();
    auto integers = llvm::dyn_cast<DenseIntElementsAttr>(value);
    return integers && integers.isSplat() && integers.getSplatValue<APInt>().isZero();
  };
  if (!matchPattern(op->getOperand(6), m_Constant(&least)) || !isZero(least))
    return g.fail("it leaves out small sums, so that how many there are depends on the data");
  SmallVector<int64_t> flat;
  for (const auto &[place, number] : all->places)
    llvm::append_range(flat, place);
  const int64_t count = static_cast<int64_t>(all->places.size());
  Value places = g.reshape(g.integers(flat, /*wide=*/true), {Dim(count), Dim(a->rank)});
  auto spread = [&](const Sparse &x, unsigned side) {
    return g.segmentSum(x.values, g.integers(all->numbers[side]), g.integer(count));
  };
  Value values = g.add(spread(*a, 0), spread(*b, 1));
  if (g.failed())
    return failure();
  return SmallVector<Value>{places, values, g.make<IdentityOp>(a->shape)};
}

/// Operands: the gradient of the sum's values, places of the two and of the sum.
Result sparseAddGrad(Operation *op, GraphBuilder &g) {
  FailureOr<Union> all = Union::of(g, op->getOperand(1), op->getOperand(2));
  if (failed(all))
    return failure();
  Value dy = op->getOperand(0);
  SmallVector<Value> results = {g.gather(dy, g.integers(all->numbers[0]), 0),
                                g.gather(dy, g.integers(all->numbers[1]), 0)};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

namespace {

/// Rows of numbers, where they are constants.
std::optional<SmallVector<SmallVector<int64_t>>> getConstantRows(Value value) {
  DenseIntElementsAttr known;
  if (!matchPattern(value, m_Constant(&known)) || known.getType().getRank() != 2)
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> rows(known.getType().getDimSize(0));
  for (auto [number, at] : llvm::enumerate(known.getValues<APInt>()))
    rows[number / known.getType().getDimSize(1)].push_back(at.getSExtValue());
  return rows;
}

/// The rows of `x` at places of the block [start, start + size), and these places in the block. As many as the data
/// say, where any of them is no constant.
struct Block {
  Value rows, places;

  static Block of(const Sparse &x, Value start, Value size) {
    GraphBuilder &g = x.g;
    auto places = getConstantRows(x.places);
    auto first = g.shapes.getConstants(start), count = g.shapes.getConstants(size);
    Type i64 = g.builder.getI64Type();
    if (!places || !first || !count || first->size() != count->size() ||
        static_cast<int64_t>(first->size()) != x.rank) {
      auto made = g.makeAll<SparseBlockOp>({x.places, start, size}, {i64, i64});
      return g.failed() ? Block() : Block{made[0], made[1]};
    }
    SmallVector<int64_t> rows, at;
    for (auto [number, place] : llvm::enumerate(*places)) {
      const bool isInside = llvm::all_of(llvm::seq<int64_t>(0, x.rank), [&](int64_t axis) {
        return place[axis] >= (*first)[axis] && place[axis] - (*first)[axis] < (*count)[axis];
      });
      if (!isInside)
        continue;
      rows.push_back(static_cast<int64_t>(number));
      for (int64_t axis = 0; axis < x.rank; ++axis)
        at.push_back(place[axis] - (*first)[axis]);
    }
    return {g.integers(rows, /*wide=*/true),
            g.reshape(g.integers(at, /*wide=*/true), {Dim(static_cast<int64_t>(rows.size())), Dim(x.rank)})};
  }
};

} // namespace

/// Operands: places, values, shape, where the block begins, its size.
Result sparseSlice(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g);
  if (failed(x))
    return failure();
  Value start = op->getOperand(3), size = op->getOperand(4);
  Block block = Block::of(*x, start, size);
  // As much of the block as there is.
  Value zero = g.scalar(g.elementOf(x->shape), 0);
  Value sizes = g.maximum(g.minimum(size, g.sub(x->shape, start)), zero);
  Value values = g.gather(x->values, block.rows, 0);
  if (g.failed())
    return failure();
  return SmallVector<Value>{block.places, values, sizes};
}

/// Operands: the gradient of the block's values, all places, where the block began, places in it.
Result sparseSliceGrad(Operation *op, GraphBuilder &g) {
  Value dy = op->getOperand(0), places = op->getOperand(1);
  FailureOr<Dims> given = g.getShape(dy), all = g.getShape(places);
  if (failed(given) || failed(all))
    return failure();
  Type element = g.elementOf(dy), i64 = g.builder.getI64Type();
  if (given->size() == 1 && given->front() == Dim(0))
    return one(g, g.make<FillOp>({g.sizes({all->front()}, places), g.scalar(element, 0)}, {}, element));
  Value rows = g.make<SparseBlockRowsOp>({places, op->getOperand(2), op->getOperand(3)});
  Value none = g.scalar(i64, 0);
  return one(g, g.select(g.lessEqual(none, rows), g.gather(dy, g.maximum(rows, none), 0), g.scalar(element, 0)));
}

/// Operands: the axis, places, values, shape. The first parts are longer by one where they are not of one size.
Result sparseSplit(Operation *op, GraphBuilder &g) {
  FailureOr<Sparse> x = Sparse::of(op, g, 1);
  FailureOr<int64_t> axis = g.getConstant(op->getOperand(0));
  FailureOr<SmallVector<int64_t>> shape = g.getConstants(op->getOperand(3));
  if (failed(x) || failed(axis) || failed(shape))
    return failure();
  const int64_t parts = getNumber(op, "num_split"), along = *axis < 0 ? *axis + x->rank : *axis;
  if (along < 0 || along >= x->rank || static_cast<int64_t>(shape->size()) != x->rank || parts > (*shape)[along])
    return g.fail("it splits " + Twine(x->rank) + " axes along axis " + Twine(*axis) + " into " + Twine(parts));
  SmallVector<Value> results(3 * parts);
  SmallVector<int64_t> start(x->rank, 0), size = *shape;
  for (int64_t part = 0; part < parts; ++part) {
    size[along] = (*shape)[along] / parts + (part < (*shape)[along] % parts);
    Block block = Block::of(*x, g.integers(start, /*wide=*/true), g.integers(size, /*wide=*/true));
    results[part] = block.places;
    results[parts + part] = g.gather(x->values, block.rows, 0);
    results[2 * parts + part] = g.integers(size, /*wide=*/true);
    start[along] += size[along];
  }
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: where each value went, the gradient of all. What was filled in elsewhere has the rest of it.
Result sparseFillEmptyRowsGrad(Operation *op, GraphBuilder &g) {
  Value went = op->getOperand(0), dy = op->getOperand(1);
  Type element = g.elementOf(dy);
  Value kept = g.segmentSum(g.cast(g.make<OnesLikeOp>(went), element), went, g.sizeOf(dy, 0, g.builder.getI32Type()));
  Value zero = g.scalar(element, 0);
  Value rest = g.sum(g.select(g.less(zero, kept), zero, dy), {0});
  Value values = g.gather(dy, went, 0);
  if (g.failed())
    return failure();
  return SmallVector<Value>{values, rest};
}

} // namespace distc::dfg::decompositions

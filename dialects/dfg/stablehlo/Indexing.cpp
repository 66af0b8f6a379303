//===- Indexing.cpp - Slices by index, gathers and scatters ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A gather becomes one of rows: the indexed axes of its operand are one axis, by
// row-major positions, and a window of several elements has a position an element.
// A scatter adds to rows in the same way. Axes that operand and indices share
// (operand_batching_dims) stay in front.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/stablehlo/Converter.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace distc::stablehlo {

using Dim = dfg::Dim;
using Dims = dfg::Dims;

namespace {

/// The indices of a gather or scatter as positions of rows.
struct Rows {
  /// Axes of the operand: shared with the indices, indexed (in order of the operand), and all others.
  Ints shared, indexed, rest;
  /// Indexed axes of which a window of several elements is taken.
  Ints windows;
  /// Axes of the indices without that of the index vector: those that are shared, and all others.
  Ints sharedIndices, otherIndices;
  /// Sizes of the indices' axes, without that of the index vector.
  Dims indexSizes;
  /// Positions, [shared, other, windows], and whether the window of each is inside of the operand ([shared, other]).
  Value positions, isInside;
  /// How many rows there are; also as a number of the graph.
  Dim count = 1;
  Value countValue;
};

struct IndexForm {
  Ints shared, sharedIndices, indexMap;
  int64_t vectorAxis;
  /// Axes of the operand of which the windows' axes are not there.
  Ints dropped;
};

/// The axis along which the elements of `value` are 0, 1, 2, ... and the same along all others.
std::optional<int64_t> findCountedAxis(dfg::GraphBuilder &g, Value value) {
  Operation *op = value.getDefiningOp();
  FailureOr<Dims> shape = op ? g.getShape(value) : FailureOr<Dims>(failure());
  if (failed(shape))
    return std::nullopt;
  if (llvm::isa<dfg::RangeOp>(op))
    return g.shapes.getConstant(op->getOperand(0)) == 0 && g.shapes.getConstant(op->getOperand(2)) == 1
               ? std::optional(0)
               : std::nullopt;
  Value of = op->getNumOperands() ? op->getOperand(0) : Value();
  if (llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op)) {
    // Of negative numbers, which count from the end, there are none.
    auto isNegative = of.getDefiningOp<dfg::LessOp>();
    if (!isNegative || g.shapes.getConstant(isNegative->getOperand(1)) != 0 ||
        !findCountedAxis(g, isNegative->getOperand(0)))
      return std::nullopt;
    of = op->getOperand(2);
  } else if (llvm::isa<dfg::MulOp, dfg::AddV2Op>(op)) {
    // JAX's arange begins and steps by what it is given.
    const int64_t neutral = llvm::isa<dfg::MulOp>(op);
    if (g.shapes.getConstant(of) == neutral)
      of = op->getOperand(1);
    else if (g.shapes.getConstant(op->getOperand(1)) != neutral)
      return std::nullopt;
  }
  FailureOr<Dims> from = of ? g.getShape(of) : FailureOr<Dims>(failure());
  std::optional<int64_t> axis = succeeded(from) ? findCountedAxis(g, of) : std::nullopt;
  if (!axis)
    return std::nullopt;
  const Dim size = (*from)[*axis];
  if (llvm::isa<dfg::CastOp>(op))
    return llvm::isa<IntegerType>(g.elementOf(value)) && g.elementOf(value).getIntOrFloatBitWidth() >= 32
               ? axis
               : std::nullopt;
  if (llvm::isa<dfg::BroadcastToOp, dfg::SelectOp, dfg::SelectV2Op, dfg::MulOp, dfg::AddV2Op>(op)) {
    int64_t to = *axis + static_cast<int64_t>(shape->size()) - static_cast<int64_t>(from->size());
    return to >= 0 && (*shape)[to] == size ? std::optional(to) : std::nullopt;
  }
  if (llvm::isa<dfg::ReshapeOp, dfg::ExpandDimsOp>(op)) {
    // The same axes, with others of size 1 between them.
    Ints axesOfOne, axesOfOther;
    for (auto [number, each] : llvm::enumerate(*from))
      if (!(each == Dim(1)))
        axesOfOne.push_back(number);
    for (auto [number, each] : llvm::enumerate(*shape))
      if (!(each == Dim(1)))
        axesOfOther.push_back(number);
    if (axesOfOne.size() != axesOfOther.size() || !llvm::all_of(llvm::zip(axesOfOne, axesOfOther), [&](auto pair) {
          return (*from)[std::get<0>(pair)] == (*shape)[std::get<1>(pair)];
        }))
      return std::nullopt;
    auto it = llvm::find(axesOfOne, *axis);
    return it == axesOfOne.end() ? std::nullopt : std::optional(axesOfOther[it - axesOfOne.begin()]);
  }
  return std::nullopt;
}

/// The indices along one axis of the operand, with an axis of size 1 for the vector's; null where they are not known
/// apart.
Value getComponent(dfg::GraphBuilder &g, Value indices, int64_t vectorAxis, size_t component, size_t count) {
  if (count == 1)
    return indices;
  auto joined = indices.getDefiningOp<dfg::ConcatV2Op>();
  if (!joined || joined->getNumOperands() != count + 1 || g.shapes.getConstant(joined->getOperand(count)) != vectorAxis)
    return {};
  return joined->getOperand(component);
}

class RowFinder {
public:
  RowFinder(dfg::GraphBuilder &g, IndexForm form) : g(g), form(std::move(form)) {}

  /// `indices`: of 32 or 64 bits (asIndices). `window`: the size of the window along each axis of the operand.
  /// `clamps`: windows that are not inside are moved there.
  FailureOr<Rows> find(Value operand, ArrayRef<Dim> shape, Value indices, ArrayRef<Dim> window, bool clamps) {
    FailureOr<Dims> sizes = g.getShape(indices);
    if (failed(sizes))
      return failure();
    int64_t rank = sizes->size(), vectorAxis = form.vectorAxis;
    auto areAxes = [](ArrayRef<int64_t> axes, int64_t rank) {
      return llvm::all_of(axes, [&](int64_t axis) { return axis >= 0 && axis < rank; });
    };
    if (vectorAxis < 0 || vectorAxis > rank || window.size() != shape.size() || !areAxes(form.shared, shape.size()) ||
        !areAxes(form.indexMap, shape.size()) || !areAxes(form.sharedIndices, rank) ||
        llvm::is_contained(form.sharedIndices, vectorAxis) || form.shared.size() != form.sharedIndices.size())
      return g.fail("has dimension_numbers that its operands are not of");
    if (vectorAxis < rank && form.indexMap.size() > 1)
      indices = shareExamples(shape, indices, window, *sizes);
    if (vectorAxis == rank) {
      indices = g.expandDims(indices, rank);
      sizes->push_back(Dim(1));
    } else {
      Ints order;
      for (int64_t axis = 0; axis < rank; ++axis)
        if (axis != vectorAxis)
          order.push_back(axis);
      order.push_back(vectorAxis);
      indices = g.transpose(indices, order);
      sizes->erase(sizes->begin() + vectorAxis);
      sizes->push_back(Dim(static_cast<int64_t>(form.indexMap.size())));
    }
    Rows rows;
    rows.indexSizes.assign(sizes->begin(), sizes->end() - 1);
    rows.shared = form.shared;
    for (int64_t axis : form.sharedIndices)
      rows.sharedIndices.push_back(axis > vectorAxis ? axis - 1 : axis);
    for (int64_t axis = 0; axis < static_cast<int64_t>(rows.indexSizes.size()); ++axis)
      if (!llvm::is_contained(rows.sharedIndices, axis))
        rows.otherIndices.push_back(axis);
    bool isOne = llvm::all_of(rows.otherIndices, [&](int64_t axis) { return rows.indexSizes[axis] == Dim(1); });
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      if (llvm::is_contained(form.shared, axis))
        continue;
      // A window of a whole axis has one place.
      bool isWhole = clamps && isOne && form.shared.empty() && window[axis] == shape[axis];
      if (!llvm::is_contained(form.indexMap, axis) || isWhole)
        rows.rest.push_back(axis);
      else
        rows.indexed.push_back(axis);
    }
    // [shared, other, vector]
    Ints order(rows.sharedIndices);
    llvm::append_range(order, rows.otherIndices);
    order.push_back(rows.indexSizes.size());
    indices = g.transpose(indices, order);
    Dims leading;
    for (int64_t axis : ArrayRef(order).drop_back())
      leading.push_back(rows.indexSizes[axis]);
    for (int64_t axis : rows.indexed)
      if (!(window[axis] == Dim(1)))
        rows.windows.push_back(axis);
    int64_t vector = leading.size();
    Dims spread(leading);
    spread.append(rows.windows.size(), Dim(1));
    Type element = g.elementOf(indices);
    for (int64_t axis : rows.indexed) {
      if (!window[axis].isConstant() || (!shape[axis].isConstant() && rows.indexed.size() > 1))
        return g.fail("takes examples of the batch by index");
      int64_t component = llvm::find(form.indexMap, axis) - form.indexMap.begin();
      Value at = g.reshape(g.slice(indices, vector, component, 1), leading);
      Value zero = g.scalar(element, 0), size = g.sizeOf(operand, axis, element), most;
      if (shape[axis].isConstant())
        most = g.scalar(element, static_cast<double>(shape[axis].getConstant() - window[axis].getConstant()));
      else
        most = g.sub(size, g.scalar(element, static_cast<double>(window[axis].getConstant())));
      if (clamps) {
        at = g.minimum(g.maximum(at, zero), most);
      } else {
        Value inside = g.both(g.lessEqual(zero, at), g.lessEqual(at, most));
        rows.isInside = rows.isInside ? g.both(rows.isInside, inside) : inside;
      }
      at = g.reshape(at, spread);
      if (auto it = llvm::find(rows.windows, axis); it != rows.windows.end()) {
        Dims along(spread.size(), Dim(1));
        along[leading.size() + (it - rows.windows.begin())] = window[axis];
        Value range = g.make<dfg::RangeOp>({g.integer(0), g.integer(window[axis].getConstant()), g.integer(1)});
        at = g.add(at, g.reshape(g.cast(range, element), along));
      }
      rows.positions = rows.positions ? g.add(g.mul(rows.positions, size), at) : at;
      rows.count = rows.count * shape[axis];
    }
    if (rows.count.isConstant())
      rows.countValue = g.integer(rows.count.getConstant());
    else
      rows.countValue = g.sizeOf(operand, rows.indexed.front(), g.builder.getI32Type());
    return rows;
  }

private:
  /// x[arange(b), i]: an axis with the batch's rows that is indexed by their numbers is one that operand and indices
  /// share. What is left of the indices.
  Value shareExamples(ArrayRef<Dim> shape, Value indices, ArrayRef<Dim> window, Dims &sizes) {
    const size_t count = form.indexMap.size();
    Ints left;
    Values parts;
    for (auto [number, axis] : llvm::enumerate(form.indexMap)) {
      Value part = getComponent(g, indices, form.vectorAxis, number, count);
      if (!part)
        return indices;
      std::optional<int64_t> counted;
      if (!shape[axis].isConstant() && window[axis] == Dim(1) && llvm::is_contained(form.dropped, axis))
        counted = findCountedAxis(g, part);
      bool isShared = counted && *counted != form.vectorAxis && sizes[*counted] == shape[axis] &&
                      !llvm::is_contained(form.sharedIndices, *counted) && parts.size() + count - number > 1;
      if (isShared) {
        form.shared.push_back(axis);
        form.sharedIndices.push_back(*counted);
      } else {
        left.push_back(axis);
        parts.push_back(part);
      }
    }
    if (left.size() == count)
      return indices;
    form.indexMap = left;
    sizes[form.vectorAxis] = Dim(static_cast<int64_t>(left.size()));
    return parts.size() == 1 ? parts[0] : g.concat(parts, form.vectorAxis);
  }

  using Values = llvm::SmallVector<Value>;

  dfg::GraphBuilder &g;
  IndexForm form;
};

/// Where the only window of a gather or scatter begins, whose size depends on the batch: inside for every batch. None
/// where it is another.
std::optional<Dims> findWindowOfBatch(dfg::GraphBuilder &g, ArrayRef<Dim> shape, Value indices,
                                      ArrayRef<int64_t> indexMap, ArrayRef<Dim> window, dfg::GraphOp graph) {
  FailureOr<Dims> sizes = g.getShape(indices);
  std::optional<Dims> starts = g.shapes.getElements(indices);
  if (llvm::failed(sizes) || sizes->size() != 1 || !starts || starts->size() != indexMap.size() ||
      window.size() != shape.size() || llvm::equal(window, shape) ||
      llvm::none_of(window, [](Dim size) { return size.dependsOnBatch(); }))
    return std::nullopt;
  const int64_t smallest = llvm::divideCeilSigned(dfg::getSmallestBatch(graph), dfg::getBatchMultiple(graph));
  auto isNegative = [&](Dim size) {
    int64_t least;
    return !size.isKnown() || size.getScale() < 0 || llvm::MulOverflow(size.getScale(), smallest, least) ||
           llvm::AddOverflow(least, size.getOffset(), least) || least < 0;
  };
  Dims begin(shape.size(), Dim(0));
  for (auto [number, axis] : llvm::enumerate(indexMap)) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return std::nullopt;
    begin[axis] = (*starts)[number];
  }
  for (auto [size, from, taken] : llvm::zip(shape, begin, window))
    if (isNegative(from) || isNegative(taken) || isNegative(size - from - taken))
      return std::nullopt;
  return begin;
}

Ints complement(ArrayRef<int64_t> axes, size_t rank) {
  Ints others;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis)
    if (!llvm::is_contained(axes, axis))
      others.push_back(axis);
  return others;
}

Ints join(ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c = {}) {
  Ints all(a);
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

} // namespace

// ---- Gathers
// ---------------------------------------------------------------------------------------------------------

Converter::Result Converter::gatherOf(Operation *op, Value operand, Value indices, ArrayRef<Dim> window, Builder &g) {
  indices = asIndices(g, op, 1, indices);
  std::optional<DimensionNumbers> numbers = DimensionNumbers::get(op, "dimension_numbers");
  FailureOr<Dims> shape = g.getShape(operand);
  if (!numbers || failed(shape))
    return fail(g, "has no dimension_numbers");
  if (auto begin = findWindowOfBatch(g, *shape, indices, (*numbers)["start_index_map"], window, graph);
      begin && (*numbers)["collapsed_slice_dims"].empty() && (*numbers)["operand_batching_dims"].empty()) {
    // So many of the examples, z[:, :3] of all by all: by number.
    if (llvm::any_of(llvm::zip(*shape, window),
                     [](auto each) { return std::get<0>(each).dependsOnBatch() && std::get<1>(each).isConstant(); })) {
      Values starts;
      for (Dim from : *begin)
        starts.push_back(from.isConstant() ? g.integer(from.getConstant()) : g.reshape(g.sizes({from}, operand), {}));
      return takeSlice(g, operand, starts, window);
    }
    // z[n:], where the examples are beside others.
    Dims limit =
        llvm::map_to_vector(llvm::zip(*begin, window), [](auto each) { return std::get<0>(each) + std::get<1>(each); });
    return one(g, g.make<dfg::StridedSliceOp>({operand, g.sizes(*begin, operand), g.sizes(limit, operand),
                                               g.integers(Ints(shape->size(), 1))}));
  }
  IndexForm form{(*numbers)["operand_batching_dims"], (*numbers)["start_indices_batching_dims"],
                 (*numbers)["start_index_map"], numbers->getNumber("index_vector_dim"),
                 (*numbers)["collapsed_slice_dims"]};
  FailureOr<Rows> rows = RowFinder(g, form).find(operand, *shape, indices, window, /*clamps=*/true);
  if (failed(rows))
    return failure();
  // Of axes that no index names, the first elements.
  Value x = operand;
  for (int64_t axis : rows->rest)
    if (!(window[axis] == (*shape)[axis])) {
      if (!window[axis].isConstant() || !(*shape)[axis].isConstant())
        return fail(g, "takes some of the examples of the batch");
      x = g.slice(x, axis, 0, window[axis].getConstant());
    }
  x = g.transpose(x, join(rows->shared, rows->indexed, rows->rest));
  // What the axes of the result are of: the indices' (0), windows (1) or other axes of the operand (2).
  SmallVector<std::pair<int, int64_t>> labels;
  Dims sizes;
  if (rows->indexed.empty()) {
    for (int64_t axis : rows->otherIndices) {
      labels.push_back({0, axis});
      sizes.push_back(Dim(1));
    }
  } else {
    Dims merged;
    for (int64_t axis : rows->shared)
      merged.push_back((*shape)[axis]);
    merged.push_back(rows->count);
    for (int64_t axis : rows->rest)
      merged.push_back(window[axis]);
    int64_t front = rows->shared.size();
    x = g.gather(rows->indexed.size() == 1 ? x : g.reshape(x, merged), rows->positions, front, front);
    for (int64_t axis : join(rows->sharedIndices, rows->otherIndices)) {
      labels.push_back({0, axis});
      sizes.push_back(rows->indexSizes[axis]);
    }
    for (int64_t axis : rows->windows) {
      labels.push_back({1, axis});
      sizes.push_back(window[axis]);
    }
  }
  for (int64_t axis : rows->rest) {
    labels.push_back({2, axis});
    sizes.push_back(window[axis]);
  }
  if (rows->indexed.empty())
    x = g.reshape(x, sizes);
  // In the order of the result, and what it does not have behind it.
  const Ints &offsets = (*numbers)["offset_dims"], &collapsed = (*numbers)["collapsed_slice_dims"];
  Ints kept = complement(join(collapsed, rows->shared), shape->size());
  size_t rank = rows->indexSizes.size() + kept.size();
  if (offsets.size() != kept.size())
    return fail(g, "has dimension_numbers that its operands are not of");
  Ints order;
  Dims result;
  size_t nextIndex = 0, nextOffset = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    bool isOffset = llvm::is_contained(offsets, static_cast<int64_t>(axis));
    int64_t source = isOffset ? kept[nextOffset++] : static_cast<int64_t>(nextIndex++);
    auto found = llvm::find_if(
        labels, [&](auto &label) { return label.second == source && (isOffset ? label.first > 0 : label.first == 0); });
    if (found == labels.end()) {
      result.push_back(Dim(1));
      continue;
    }
    order.push_back(found - labels.begin());
    result.push_back(sizes[order.back()]);
  }
  Ints dropped = complement(order, labels.size());
  x = g.transpose(x, join(order, dropped));
  FailureOr<Dims> now = g.getShape(x);
  if (failed(now))
    return failure();
  return one(g, *now == result ? x : g.reshape(x, result));
}

Converter::Result Converter::gather(Operation *op, Values operands, Builder &g) {
  Ints window = getInts(op, "slice_sizes");
  return gatherOf(op, operands[0], operands[1], Dims(window.begin(), window.end()), g);
}

Converter::Result Converter::dynamicGather(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> window = getSizes(operands[2], g);
  if (failed(window))
    return failure();
  return gatherOf(op, operands[0], operands[1], *window, g);
}

// ---- Scatters
// --------------------------------------------------------------------------------------------------------

/// What is written into a window whose place is known, the only one: slices beside each other. None where it is
/// another.
std::optional<Converter::Result> Converter::scatterAtKnownPlace(Builder &g, Value operand, Value indices, Value updates,
                                                                const Dims &window, ArrayRef<int64_t> indexMap,
                                                                ArrayRef<int64_t> windowAxes, Combination combination,
                                                                bool isUnsigned) {
  FailureOr<Dims> shape = g.getShape(operand), indexSizes = g.getShape(indices), sizes = g.getShape(updates);
  std::optional<SmallVector<int64_t>> places = g.shapes.getConstants(indices);
  if (failed(shape) || failed(indexSizes) || failed(sizes) || !places || places->size() != indexMap.size() ||
      indexSizes->size() > 1 || !llvm::is_sorted(windowAxes) || windowAxes.size() != sizes->size() ||
      window.size() != shape->size())
    return std::nullopt;
  Values starts(shape->size(), g.integer(0));
  Dims taken(shape->size(), Dim(-1));
  bool isWide = false;
  for (auto [axis, place] : llvm::zip(indexMap, *places)) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape->size()) || !(*shape)[axis].isConstant() ||
        !window[axis].isConstant() || place < 0 || place + window[axis].getConstant() > (*shape)[axis].getConstant())
      return std::nullopt;
    starts[axis] = g.integer(place);
    taken[axis] = window[axis];
    isWide |= taken[axis].getConstant() > 1;
  }
  for (auto [axis, size] : llvm::enumerate(*shape))
    if (taken[axis] == Dim(-1) && !(window[axis] == size))
      return std::nullopt;
  if (!isWide)
    return std::nullopt;
  updates = withOtherOnes(g, updates, window);
  if (combination != Combination::Assign) {
    Result old = takeSlice(g, operand, starts, taken);
    if (failed(old))
      return old;
    updates = combine(g, combination, old->front(), updates, isUnsigned);
  }
  Values all = {operand, updates};
  llvm::append_range(all, starts);
  return dynamicUpdateSlice(nullptr, all, g);
}

/// What changes nothing; null where the combination has none of its own.
Value Converter::makeNeutral(Builder &g, Combination combination, Type element, bool isUnsigned) {
  const bool isMax = combination == Combination::Max;
  if (combination == Combination::Add || combination == Combination::Mul)
    return g.scalar(element, combination == Combination::Mul);
  if ((!isMax && combination != Combination::Min) || llvm::isa<ComplexType>(element))
    return {};
  auto type = RankedTensorType::get({}, element);
  if (auto real = llvm::dyn_cast<FloatType>(element))
    return makeConstant(g, DenseElementsAttr::get(type, APFloat::getInf(real.getFloatSemantics(), isMax)));
  const unsigned width = element.getIntOrFloatBitWidth();
  APInt value = isUnsigned ? (isMax ? APInt::getZero(width) : APInt::getMaxValue(width))
                           : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return makeConstant(g, DenseElementsAttr::get(type, value));
}

/// `rows` [count, rest] with each of `values` [ids, rest] combined with the row of its id; ids outside are none.
Value Converter::combineSegments(Builder &g, Combination combination, Value rows, Value values, Value ids, Value count,
                                 bool isUnsigned) {
  const bool isMax = combination == Combination::Max, flips = isUnsigned && combination != Combination::Mul;
  if (combination != Combination::Mul && !isMax && combination != Combination::Min)
    return (void)g.fail("combines bits where indices say"), Value();
  if (flips)
    values = flipSign(g, values);
  Value reduced = combination == Combination::Mul ? g.make<dfg::UnsortedSegmentProdOp>({values, ids, count})
                  : isMax                         ? g.make<dfg::UnsortedSegmentMaxOp>({values, ids, count})
                                                  : g.make<dfg::UnsortedSegmentMinOp>({values, ids, count});
  if (flips)
    reduced = flipSign(g, reduced);
  Value combined = combine(g, combination, rows, reduced, isUnsigned);
  if (combination == Combination::Mul)
    return combined;
  // Rows of which there are no values stay: what TensorFlow gives for them is finite.
  FailureOr<Dims> shape = g.getShape(rows), places = g.getShape(ids);
  if (failed(shape) || failed(places))
    return {};
  Type i32 = g.builder.getI32Type();
  Value ones = g.make<dfg::FillOp>({g.sizes(*places, ids), g.integer(1)}, {}, i32);
  Dims along(shape->size(), Dim(1));
  along[0] = (*shape)[0];
  Value has = g.reshape(g.less(g.integer(0), g.segmentSum(ones, ids, count)), along);
  return g.select(has, combined, rows);
}

/// `x` of `shape`, zeros where there is none, with `updates` combined with the elements from `begin` on, whose places
/// depend on the batch: zeros around them, and which elements they are.
Converter::Result Converter::updateRows(Builder &g, Value x, ArrayRef<Dim> shape, Value updates, ArrayRef<Dim> begin,
                                        Combination combination, bool isUnsigned) {
  FailureOr<Dims> part = g.getShape(updates);
  if (failed(part))
    return failure();
  const Type element = Builder::elementOf(updates);
  Dims behind, none(shape.size(), Dim(0));
  for (auto [size, from, taken] : llvm::zip(shape, begin, *part))
    behind.push_back(size - from - taken);
  Result padded = padByBatch(g, updates, {Dims(begin), behind, none}, g.scalar(element, 0));
  if (failed(padded) || !x)
    return padded;
  if (combination == Combination::Add && llvm::isa<FloatType, ComplexType>(element))
    return one(g, g.add(x, padded->front()));
  Value isUpdated;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    if (size == (*part)[axis])
      continue;
    Value places = g.positions(padded->front(), axis, g.builder.getI32Type());
    Value limits = g.sizes({begin[axis], begin[axis] + (*part)[axis]}, padded->front());
    auto limit = [&](int64_t number) { return g.reshape(g.slice(limits, 0, number, 1), {}); };
    Dims along(shape.size(), Dim(1));
    along[axis] = size;
    Value is = g.reshape(g.both(g.lessEqual(limit(0), places), g.less(places, limit(1))), along);
    isUpdated = isUpdated ? g.both(isUpdated, is) : is;
  }
  return one(g, g.select(isUpdated, combine(g, combination, x, padded->front(), isUnsigned), x));
}

Converter::Result Converter::scatter(Operation *op, Values operands, Builder &g) {
  std::optional<DimensionNumbers> numbers = DimensionNumbers::get(op, "scatter_dimension_numbers");
  std::optional<Combination> combination = op->getNumRegions() == 1 ? getCombination(op->getRegion(0)) : std::nullopt;
  if (operands.size() != 3 || !numbers || !combination)
    return fail(g, "scatters by a function that is not a sum, product, maximum or minimum, nor the new value");
  operands[1] = asIndices(g, op, 1, operands[1]);
  Value operand = operands[0], updates = operands[2];
  FailureOr<Dims> shape = g.getShape(operand), updateSizes = g.getShape(updates);
  if (failed(shape) || failed(updateSizes))
    return failure();
  IndexForm form{(*numbers)["input_batching_dims"], (*numbers)["scatter_indices_batching_dims"],
                 (*numbers)["scatter_dims_to_operand_dims"], numbers->getNumber("index_vector_dim"),
                 (*numbers)["inserted_window_dims"]};
  const Ints &windowAxes = (*numbers)["update_window_dims"], &inserted = (*numbers)["inserted_window_dims"];
  Ints kept = complement(join(inserted, form.shared), shape->size());
  if (windowAxes.size() != kept.size())
    return fail(g, "has dimension_numbers that its operands are not of");
  Dims window(shape->size(), Dim(1));
  for (auto [axis, of] : llvm::zip(windowAxes, kept)) {
    if (axis < 0 || axis >= static_cast<int64_t>(updateSizes->size()))
      return fail(g, "has dimension_numbers that its operands are not of");
    window[of] = (*updateSizes)[axis];
  }
  const bool natural = isUnsigned(op->getOperand(0));
  if (auto begin = findWindowOfBatch(g, *shape, operands[1], form.indexMap, window, graph);
      begin && inserted.empty() && form.shared.empty() && llvm::is_sorted(windowAxes)) {
    // What is added to zeros is what stands there, as the gradient of z[n:].
    const bool isNew = *combination == Combination::Add && isIdentity(op->getOperand(0), Combination::Add);
    return updateRows(g, isNew ? Value() : operand, *shape, updates, *begin, *combination, natural);
  }
  if (form.shared.empty())
    if (auto known = scatterAtKnownPlace(g, operand, operands[1], updates, window, form.indexMap, windowAxes,
                                         *combination, natural))
      return *known;
  FailureOr<Rows> rows = RowFinder(g, form).find(operand, *shape, operands[1], window, /*clamps=*/false);
  if (failed(rows))
    return failure();
  if (form.indexMap.empty() && rows->indexSizes.empty() && updateSizes->size() == shape->size() && window == *shape)
    // All of it.
    return one(g, combine(g, *combination, operand, updates, natural));
  if (rows->indexed.empty())
    return fail(g, "has no indices");
  for (int64_t axis : rows->rest)
    if (!(window[axis] == (*shape)[axis]))
      return fail(g, "updates a part of an axis that no index names");
  // Updates as [shared, other, windows, rest].
  Ints indexAxes = complement(windowAxes, updateSizes->size()), order;
  if (indexAxes.size() != rows->indexSizes.size())
    return fail(g, "has dimension_numbers that its operands are not of");
  for (int64_t axis : join(rows->sharedIndices, rows->otherIndices))
    order.push_back(indexAxes[axis]);
  auto axisOf = [&](int64_t axis) { return windowAxes[llvm::find(kept, axis) - kept.begin()]; };
  for (int64_t axis : rows->windows)
    order.push_back(axisOf(axis));
  for (int64_t axis : rows->rest)
    order.push_back(axisOf(axis));
  // Of windows of one element no axis is left.
  Ints single = complement(order, updateSizes->size());
  updates = g.transpose(updates, join(order, single));
  Dims arranged;
  for (int64_t axis : order)
    arranged.push_back((*updateSizes)[axis]);
  if (!single.empty())
    updates = g.reshape(updates, arranged);
  Type element = Builder::elementOf(operand), indexType = Builder::elementOf(rows->positions);
  // What is outside is -1.
  Dims insideSizes;
  for (int64_t axis : join(rows->sharedIndices, rows->otherIndices))
    insideSizes.push_back(rows->indexSizes[axis]);
  insideSizes.append(rows->windows.size(), Dim(1));
  Value inside = rows->windows.empty() ? rows->isInside : g.reshape(rows->isInside, insideSizes);
  Value positions = g.select(inside, rows->positions, g.scalar(indexType, -1));

  // The operand as [shared, rows, rest].
  Ints operandOrder = join(rows->shared, rows->indexed, rows->rest);
  Dims merged, ordered;
  for (int64_t axis : rows->shared)
    merged.push_back((*shape)[axis]);
  merged.push_back(rows->count);
  for (int64_t axis : rows->rest)
    merged.push_back((*shape)[axis]);
  for (int64_t axis : operandOrder)
    ordered.push_back((*shape)[axis]);
  auto asRows = [&](Value x) {
    x = g.transpose(x, operandOrder);
    return rows->indexed.size() == 1 ? x : g.reshape(x, merged);
  };
  auto asOperand = [&](Value x) {
    return g.transpose(rows->indexed.size() == 1 ? x : g.reshape(x, ordered), invertPermutationVector(operandOrder));
  };
  int64_t front = rows->shared.size();
  FailureOr<Dims> positionSizes = g.getShape(positions);
  if (failed(positionSizes))
    return failure();
  Dim each = Dim(1);
  for (Dim size : ArrayRef(*positionSizes).drop_front(front))
    each = each * size;
  // Few rows an example, one behind the other: each a choice, element by element.
  const bool isSum = *combination == Combination::Add;
  constexpr int64_t few = 32;
  if (each == Dim(1) || (front > 0 && !(isSum && llvm::isa<FloatType, ComplexType>(element)) && each.isConstant() &&
                         each.getConstant() <= few)) {
    Dims ids(merged.begin(), merged.begin() + front), values(ids), range(front, Dim(1));
    ids.push_back(each);
    values.push_back(each);
    values.append(merged.begin() + front + 1, merged.end());
    range.push_back(rows->count);
    range.append(rows->rest.size(), Dim(1));
    Value numbers = g.make<dfg::RangeOp>({g.integer(0), rows->countValue, g.integer(1)});
    numbers = g.reshape(g.cast(numbers, indexType), range);
    Value places = g.reshape(positions, ids), given = g.reshape(updates, values), result = asRows(operand);
    for (int64_t number = 0, count = each.getConstant(); number < count; ++number) {
      Value place = count == 1 ? places : g.slice(places, front, number, 1);
      if (!rows->rest.empty())
        place = g.reshape(place, [&] {
          Dims sizes(merged.begin(), merged.begin() + front);
          sizes.append(merged.size() - front, Dim(1));
          return sizes;
        }());
      Value value = count == 1 ? given : g.slice(given, front, number, 1), isRow = g.equal(place, numbers);
      if (number == 0 && isSum && isIdentity(op->getOperand(0), Combination::Add))
        result = g.select(isRow, value, g.scalar(element, 0));
      else
        result = g.select(isRow, combine(g, *combination, result, value, natural), result);
    }
    return one(g, asOperand(result));
  }
  if (isSum && element.isInteger(1))
    return fail(g, "adds booleans where indices say");
  if (*combination != Combination::Assign && !(isSum && (front == 0 || llvm::isa<FloatType, ComplexType>(element)))) {
    if (front == 0)
      return one(g, asOperand(combineSegments(g, *combination, asRows(operand), updates, positions, rows->countValue,
                                              natural)));
    // The axis of the sources, one behind the other, and before the rows.
    Dims flatIds(merged.begin(), merged.begin() + front), flatValues;
    flatIds.push_back(each);
    flatValues = flatIds;
    flatIds.append(1 + rows->rest.size(), Dim(1));
    flatValues.push_back(Dim(1));
    flatValues.append(merged.begin() + front + 1, merged.end());
    Dims range(front + 1, Dim(1));
    range.push_back(rows->count);
    range.append(rows->rest.size(), Dim(1));
    Value numbers = g.cast(g.make<dfg::RangeOp>({g.integer(0), rows->countValue, g.integer(1)}), indexType);
    Value isRow = g.equal(g.reshape(positions, flatIds), g.reshape(numbers, range));
    Value neutral = makeNeutral(g, *combination, element, natural);
    if (!neutral)
      return fail(g, "combines bits where indices say");
    Value given = g.select(isRow, g.reshape(updates, flatValues), neutral);
    Value reduced = reduceAxes(g, *combination, given, {front}, natural);
    return one(g, asOperand(combine(g, *combination, asRows(operand), reduced, natural)));
  }
  if (isSum) {
    Value sum;
    if (front == 0) {
      sum = g.segmentSum(updates, positions, rows->countValue);
    } else {
      // A product with the rows' indicators.
      std::string shared;
      for (int64_t i = 0; i < front; ++i)
        shared += static_cast<char>('a' + i);
      Dims flatIds(merged.begin(), merged.begin() + front), flatValues;
      flatIds.push_back(each);
      flatValues = flatIds;
      flatIds.push_back(Dim(1));
      Dim size = 1;
      for (int64_t axis : rows->rest)
        size = size * (*shape)[axis];
      flatValues.push_back(size);
      Value count = g.cast(g.make<dfg::RangeOp>({g.integer(0), rows->countValue, g.integer(1)}), indexType);
      Value indicators = g.cast(g.equal(g.reshape(positions, flatIds), count), element);
      Value values = g.reshape(updates, flatValues);
      // An einsum of parts of the batch would make one axis of the shared ones, beside two of open size.
      if (llvm::all_of(ArrayRef(merged).take_front(front), [](Dim size) { return size.isConstant(); }))
        sum = g.batchMatMul(indicators, values, /*transposeA=*/true, /*transposeB=*/false);
      else
        sum = g.make<dfg::EinsumOp>(
            {indicators, values},
            g.attribute("equation", g.builder.getStringAttr(shared + "zy," + shared + "zx->" + shared + "yx")));
      sum = g.reshape(sum, merged);
    }
    Value added = asOperand(sum);
    return one(g, isIdentity(op->getOperand(0), Combination::Add) ? added : g.add(operand, added));
  }
  if (front > 0)
    return fail(g, "replaces many rows of each example by index; with jax.vmap, of at most 32 rows it does");
  if (!rows->count.isConstant()) {
    // How many rows there are is open: each takes the last that replaces it, if one does.
    Dims values(1, each), along(1 + rows->rest.size(), Dim(1));
    values.append(merged.begin() + 1, merged.end());
    along[0] = rows->count;
    Value ids = g.reshape(positions, {each});
    Value total = each.isConstant() ? g.integer(each.getConstant()) : g.reshape(g.sizes({each}, ids), {});
    Value numbers = g.make<dfg::RangeOp>({g.integer(0), total, g.integer(1)});
    Value last = g.make<dfg::UnsortedSegmentMaxOp>({numbers, ids, rows->countValue});
    Value given = g.gather(g.reshape(updates, values), g.maximum(last, g.integer(0)), 0);
    Value isReplaced = g.reshape(g.lessEqual(g.integer(0), last), along);
    return one(g, asOperand(g.select(isReplaced, given, asRows(operand))));
  }
  const int64_t depth = rows->count.getConstant();
  // What is outside goes to a row of its own.
  Value rowsAndOne = g.padAxis(asRows(operand), 0, 0, 1);
  positions = g.select(inside, rows->positions, g.scalar(indexType, static_cast<double>(depth)));
  Dims vectors(*positionSizes);
  vectors.push_back(Dim(1));
  Value updated = g.make<dfg::TensorScatterUpdateOp>({rowsAndOne, g.reshape(positions, vectors), updates});
  return one(g, asOperand(g.slice(updated, 0, 0, depth)));
}

// ---- Slices from where indices say ---------------------------------------------------------------------------------
// Where a place is known, what is made are slices; else rows are gathered, or chosen element by element.

namespace {

/// The place along an axis: a number, or a value that is inside.
struct Place {
  std::optional<int64_t> known;
  Value value;
};

FailureOr<Place> getPlace(dfg::GraphBuilder &g, Value start, int64_t size, int64_t taken) {
  if (taken > size)
    return g.fail("takes more than there is along an axis");
  if (std::optional<int64_t> known = g.shapes.getConstant(start))
    return Place{std::clamp<int64_t>(*known, 0, size - taken), {}};
  Type type = g.elementOf(start);
  Value moved = g.minimum(g.maximum(start, g.scalar(type, 0)), g.scalar(type, static_cast<double>(size - taken)));
  return Place{std::nullopt, g.expandDims(moved, 0)};
}

/// Among the examples of the batch, of which there are at least as many as are taken.
/// A size as a scalar.
Value getSize(dfg::GraphBuilder &g, Dim size, Value like) {
  return size.isConstant() ? g.integer(size.getConstant()) : g.reshape(g.sizes({size}, like), {});
}

FailureOr<Place> getPlaceInBatch(dfg::GraphBuilder &g, Value x, int64_t axis, Value start, Dim taken) {
  if (g.shapes.getConstant(start) == 0)
    return Place{std::nullopt, g.integers({0})};
  Type type = g.elementOf(start);
  Value last = g.sub(g.sizeOf(x, axis, type), g.cast(getSize(g, taken, x), type));
  return Place{std::nullopt, g.expandDims(g.minimum(g.maximum(start, g.scalar(type, 0)), last), 0)};
}

Value getRange(dfg::GraphBuilder &g, Dim size, Value like) {
  return g.make<dfg::RangeOp>({g.integer(0), getSize(g, size, like), g.integer(1)});
}

} // namespace

Converter::Result Converter::takeSlice(Builder &g, Value x, ArrayRef<Value> starts, ArrayRef<Dim> sizes) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || sizes.size() != shape->size() || starts.size() != shape->size())
    return fail(g, "does not say how much it takes of each axis");
  for (auto [axis, size] : llvm::enumerate(*shape)) {
    const Dim taken = sizes[axis];
    if (taken == Dim(-1) || size == taken)
      continue;
    if (size.isConstant() && !taken.isConstant())
      return fail(g, "takes as many elements as the batch has of an axis that has not");
    FailureOr<Place> place = size.isConstant() ? getPlace(g, starts[axis], size.getConstant(), taken.getConstant())
                                               : getPlaceInBatch(g, x, axis, starts[axis], taken);
    if (failed(place))
      return failure();
    if (place->known) {
      x = g.slice(x, axis, *place->known, taken.getConstant());
      continue;
    }
    Value rows = place->value;
    if (!(taken == Dim(1)))
      rows = g.add(rows, g.cast(getRange(g, taken, x), Builder::elementOf(rows)));
    x = g.gather(x, rows, axis);
  }
  return one(g, x);
}

Converter::Result Converter::dynamicSlice(Operation *op, Values operands, Builder &g) {
  for (unsigned i = 1; i < operands.size(); ++i)
    operands[i] = asIndices(g, op, i, operands[i]);
  Ints sizes = getInts(op, "slice_sizes");
  return takeSlice(g, operands[0], ArrayRef(operands).drop_front(), Dims(sizes.begin(), sizes.end()));
}

Converter::Result Converter::dynamicUpdateSlice(Operation *op, Values operands, Builder &g) {
  for (unsigned i = 2; op && i < operands.size(); ++i)
    operands[i] = asIndices(g, op, i, operands[i]);
  Value x = operands[0], update = operands[1];
  FailureOr<Dims> shape = g.getShape(x), part = g.getShape(update);
  if (failed(shape) || failed(part) || shape->size() != part->size() || operands.size() != 2 + shape->size())
    return fail(g, "updates a tensor by one with other axes");
  Dims begin;
  for (auto [start, size, taken] : llvm::zip(ArrayRef(operands).drop_front(2), *shape, *part)) {
    std::optional<Dims> known = g.shapes.getElements(start);
    const Dim last = size - taken, from = known && known->size() == 1 ? max(min(known->front(), last), Dim(0)) : Dim();
    begin.push_back(size == taken ? Dim(0) : from);
  }
  auto isOfBatch = [](auto each) {
    return !std::get<0>(each).isConstant() && !(std::get<0>(each) == std::get<1>(each));
  };
  if (llvm::any_of(llvm::zip(*part, *shape), isOfBatch) && llvm::all_of(begin, [](Dim from) { return from.isKnown(); }))
    return updateRows(g, op && isIdentity(op->getOperand(0), Combination::Add) ? Value() : x, *shape, update, begin,
                      Combination::Assign, false);
  Ints axes;
  SmallVector<Place> places;
  for (auto [axis, size] : llvm::enumerate(*shape)) {
    if (size == (*part)[axis])
      continue;
    const Dim taken = (*part)[axis];
    if (!taken.isKnown() || (size.isConstant() && !taken.isConstant()))
      return fail(g, "updates some of the examples of the batch");
    FailureOr<Place> place = size.isConstant()
                                 ? getPlace(g, operands[2 + axis], size.getConstant(), taken.getConstant())
                                 : getPlaceInBatch(g, x, axis, operands[2 + axis], taken);
    if (failed(place))
      return failure();
    axes.push_back(axis);
    places.push_back(*place);
  }
  if (axes.empty())
    return one(g, update);
  if (axes.size() == 1 && places[0].known && (*shape)[axes[0]].isConstant()) {
    int64_t axis = axes[0], from = *places[0].known, size = (*shape)[axis].getConstant();
    int64_t to = from + (*part)[axis].getConstant();
    Values parts;
    if (from > 0)
      parts.push_back(g.slice(x, axis, 0, from));
    parts.push_back(update);
    if (to < size)
      parts.push_back(g.slice(x, axis, to, size - to));
    return one(g, g.concat(parts, axis));
  }
  // For each element, which one of the update it is, if it is one.
  Value isUpdated, rows = update;
  for (auto [axis, place] : llvm::zip(axes, places)) {
    Value taken = getSize(g, (*part)[axis], update);
    Value start = place.known ? g.integer(*place.known) : g.cast(place.value, g.builder.getI32Type());
    Value inside = g.sub(g.positions(x, axis, g.builder.getI32Type()), start);
    Value is = g.both(g.lessEqual(g.integer(0), inside), g.less(inside, taken));
    Dims along(shape->size(), Dim(1));
    along[axis] = (*shape)[axis];
    is = g.reshape(is, along);
    isUpdated = isUpdated ? g.both(isUpdated, is) : is;
    if (!((*part)[axis] == Dim(1)))
      rows = g.gather(rows, g.minimum(g.maximum(inside, g.integer(0)), g.sub(taken, g.integer(1))), axis);
  }
  return one(g, g.select(isUpdated, rows, x));
}

} // namespace distc::stablehlo

//===- Ragged.cpp - Ragged tensors: values, and where each row of them begins -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// How many values there are is the data's to say where the splits are no constants.
// What then has another size is refused; what has a size that the graph says is
// gathered from the rows, however long they are.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// More values than these are data, which a graph does not have as constants.
constexpr size_t kMostConstants = 1 << 20;

/// The rows of one ragged axis: where each begins among those of the next, or the values, and how many it has.
struct Rows {
  Value starts, lengths;
  Dim count;
  /// The lengths, where they are known.
  std::optional<SmallVector<int64_t>> known;

  std::optional<int64_t> getMost() const {
    if (!known)
      return std::nullopt;
    return known->empty() ? 0 : std::max<int64_t>(0, *llvm::max_element(*known));
  }
};

/// Constants of any number: shape arithmetic follows a few alone.
std::optional<SmallVector<int64_t>> getIntegers(GraphBuilder &g, Value value) {
  DenseIntElementsAttr known;
  if (matchPattern(value, m_Constant(&known)))
    return llvm::map_to_vector(known.getValues<APInt>(), [](const APInt &number) { return number.getSExtValue(); });
  return g.shapes.getConstants(value);
}

FailureOr<SmallVector<int64_t>> getSplits(GraphBuilder &g, Value splits) {
  auto known = getIntegers(g, splits);
  if (!known || known->empty() || known->front() != 0 || !llvm::is_sorted(*known))
    return g.fail("where the rows of its ragged tensor begin depends on the data");
  return *known;
}

FailureOr<Rows> getRowsOfSplits(GraphBuilder &g, Value splits) {
  FailureOr<Dims> sizes = g.getShape(splits);
  if (failed(sizes) || sizes->size() != 1 || !sizes->front().isKnown() || sizes->front().isBound())
    return g.fail("the number of rows of its ragged tensor is not known");
  Rows rows;
  rows.count = sizes->front() - Dim(1);
  rows.starts = g.sliceTo(splits, 0, 0, rows.count);
  rows.lengths = g.sub(g.sliceTo(splits, 0, 1, sizes->front()), rows.starts);
  if (auto known = getIntegers(g, splits)) {
    SmallVector<int64_t> lengths;
    for (size_t row = 1; row < known->size(); ++row)
      lengths.push_back((*known)[row] - (*known)[row - 1]);
    rows.known = std::move(lengths);
  }
  return rows;
}

/// `ids`: the row of each value, in order, below `count`.
FailureOr<Rows> getRowsOfIds(GraphBuilder &g, Value ids, Dim count) {
  FailureOr<Dims> sizes = g.getShape(ids);
  if (failed(sizes) || !count.isConstant())
    return g.fail("the number of rows of its ragged tensor is not known");
  Rows rows;
  rows.count = count;
  rows.lengths = g.segmentSum(g.make<OnesLikeOp>(ids), ids, g.integer(count.getConstant()));
  rows.starts = g.sub(g.make<CumsumOp>({rows.lengths, g.integer(0)}), rows.lengths);
  if (auto known = getIntegers(g, ids)) {
    SmallVector<int64_t> lengths(count.getConstant(), 0);
    for (int64_t id : *known)
      if (id >= 0 && id < count.getConstant())
        ++lengths[id];
    rows.known = std::move(lengths);
  }
  return rows;
}

/// The row of each place in a tensor of `shape`, row-major; -1 where there is none. None where lengths are not known.
std::optional<SmallVector<int64_t>> findPlaces(ArrayRef<Rows> levels, ArrayRef<Dim> shape) {
  if (!shape.front().isConstant())
    return std::nullopt;
  SmallVector<int64_t> places;
  for (int64_t row = 0; row < shape.front().getConstant(); ++row)
    places.push_back(levels.front().count.isConstant() && row < levels.front().count.getConstant() ? row : -1);
  for (auto [level, size] : llvm::zip(levels, shape.drop_front())) {
    if (!level.known || static_cast<int64_t>(places.size()) * size.getConstant() > ShapeContext::kMaxElements)
      return std::nullopt;
    SmallVector<int64_t> starts = {0}, next;
    for (int64_t length : *level.known)
      starts.push_back(starts.back() + length);
    for (int64_t row : places) {
      const bool isThere = row >= 0 && row < static_cast<int64_t>(level.known->size());
      for (int64_t column = 0; column < size.getConstant(); ++column)
        next.push_back(isThere && column < (*level.known)[row] ? starts[row] + column : -1);
    }
    places = std::move(next);
  }
  return places;
}

/// Integers that are known are known at their places: TensorFlow's gradient chooses rows by where its values went.
Value placeConstants(GraphBuilder &g, ArrayRef<Rows> levels, ArrayRef<Dim> shape, Value values, Value otherwise) {
  auto known = g.shapes.getConstants(values);
  auto none = g.shapes.getConstant(otherwise);
  auto places = known && none ? findPlaces(levels, shape) : std::nullopt;
  if (!places || !g.elementOf(values).isInteger())
    return {};
  SmallVector<int64_t> placed;
  for (int64_t place : *places)
    placed.push_back(place < 0 || place >= static_cast<int64_t>(known->size()) ? *none : (*known)[place]);
  return g.cast(g.reshape(g.integers(placed, /*wide=*/true), shape), g.elementOf(values));
}

} // namespace

/// Operands: the shape that is asked for (-1: as long as the longest row), values, what is elsewhere, and of each
/// ragged axis its splits, or the rows of its values behind the number of the first axis' rows.
Result raggedToTensor(Operation *op, GraphBuilder &g) {
  Value values = op->getOperand(1), otherwise = op->getOperand(2);
  FailureOr<Dims> inner = g.getShape(values), asked = g.getShape(op->getOperand(0));
  if (failed(inner) || failed(asked) || inner->empty())
    return failure();
  SmallVector<Rows> levels;
  auto types = op->getAttrOfType<ArrayAttr>("row_partition_types");
  if (!types || types.size() + 3 != op->getNumOperands())
    return g.fail("its partitions are not described");
  Dim count; // of the next level's rows
  for (auto [type, partition] : llvm::zip(types, op->getOperands().drop_front(3))) {
    StringRef kind = llvm::cast<StringAttr>(type).getValue();
    FailureOr<Rows> rows = failure();
    if (kind == "FIRST_DIM_SIZE") {
      auto elements = g.shapes.getElements(partition);
      count = elements && elements->size() == 1 ? elements->front() : Dim();
      continue;
    }
    if (kind == "ROW_SPLITS")
      rows = getRowsOfSplits(g, partition);
    else if (kind == "VALUE_ROWIDS")
      rows = getRowsOfIds(g, partition, count);
    else
      return g.fail("there is no code for partitions by " + kind);
    FailureOr<Dims> sizes = g.getShape(partition);
    if (failed(rows) || failed(sizes))
      return failure();
    levels.push_back(*rows);
    count = sizes->front(); // of row ids: a value each
  }
  if (levels.empty())
    return g.fail("it has no ragged axis");
  auto sizes = g.shapes.getElements(op->getOperand(0));
  const size_t rank = levels.size() + inner->size();
  if (!asked->empty() && (!sizes || sizes->size() != rank))
    return g.fail("the shape that is asked for is not known");
  auto getAsked = [&](size_t axis) -> std::optional<Dim> {
    if (asked->empty() || (*sizes)[axis] == Dim(-1))
      return std::nullopt;
    return (*sizes)[axis];
  };
  for (size_t axis = 1; axis < inner->size(); ++axis)
    if (auto given = getAsked(levels.size() + axis); given && !shapes::fits(*given, (*inner)[axis]))
      return g.fail("it is to have the shape " + shapes::print(*sizes) + " of values of shape " +
                    shapes::print(*inner));
  // The row of each place, level by level; 0 where there is none.
  Type i64 = g.builder.getI64Type();
  Dims shape = {getAsked(0).value_or(levels.front().count)};
  Value none = g.scalar(i64, 0);
  Value at, isThere;
  bool isEmpty = inner->front() == Dim(0);
  for (auto [level, rows] : llvm::enumerate(levels)) {
    if (level == 0) {
      Value first = g.make<FillOp>({g.sizes({shape.front()}, rows.starts), none}, {}, i64);
      at = g.positions(first, 0, i64);
      isThere = g.less(at, g.sizeOf(rows.lengths, 0, i64));
    }
    std::optional<Dim> size = getAsked(level + 1);
    if (!size && rows.known)
      size = Dim(*rows.getMost());
    if (!size || !size->isConstant() || size->isBound())
      return g.fail("how long its longest row is depends on the data; say the size, as in to_tensor(shape=[None, 20])");
    shape.push_back(*size);
    if (rows.count == Dim(0))
      isEmpty = true;
    if (isEmpty)
      continue;
    const int64_t last = static_cast<int64_t>(level) + 1;
    Value safe = g.select(isThere, at, none);
    Value column = g.cast(g.make<RangeOp>({g.integer(0), g.integer(size->getConstant()), g.integer(1)}), i64);
    auto perPlace = [&](Value ofRows) { return g.expandDims(g.gather(g.cast(ofRows, i64), safe, 0), last); };
    isThere = g.both(g.expandDims(isThere, last), g.less(column, perPlace(rows.lengths)));
    at = g.select(isThere, g.add(perPlace(rows.starts), column), none);
  }
  Dims all = shape;
  all.append(inner->begin() + 1, inner->end());
  Type element = g.elementOf(values);
  if (inner->size() == 1)
    if (Value placed = placeConstants(g, levels, shape, values, otherwise))
      return one(g, placed);
  if (isEmpty)
    return one(g, g.broadcastTo(otherwise, g.sizes(all, values)));
  for (size_t axis = 1; axis < inner->size(); ++axis)
    isThere = g.expandDims(isThere, static_cast<int64_t>(shape.size() + axis - 1));
  return one(g, g.select(isThere, g.gather(values, at, 0), g.cast(otherwise, element)));
}

/// Operands: the splits of each ragged axis, values.
Result raggedToSparse(Operation *op, GraphBuilder &g) {
  Value values = op->getOperand(op->getNumOperands() - 1);
  FailureOr<SmallVector<int64_t>> inner = g.getStaticShape(values);
  if (failed(inner) || inner->empty())
    return failure();
  SmallVector<SmallVector<int64_t>> places; // of what the next splits are of
  SmallVector<int64_t> sizes;
  for (Value operand : op->getOperands().drop_back()) {
    FailureOr<SmallVector<int64_t>> splits = getSplits(g, operand);
    if (failed(splits))
      return failure();
    const int64_t rows = static_cast<int64_t>(splits->size()) - 1;
    if (sizes.empty()) {
      sizes.push_back(rows);
      for (int64_t row = 0; row < rows; ++row)
        places.push_back({row});
    }
    if (rows != static_cast<int64_t>(places.size()))
      return g.fail("its splits are of " + Twine(rows) + " rows, where there are " + Twine(places.size()));
    SmallVector<SmallVector<int64_t>> next;
    int64_t most = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t length = (*splits)[row + 1] - (*splits)[row];
      most = std::max(most, length);
      for (int64_t column = 0; column < length; ++column) {
        next.push_back(places[row]);
        next.back().push_back(column);
      }
    }
    sizes.push_back(most);
    places = std::move(next);
  }
  if (static_cast<int64_t>(places.size()) != inner->front())
    return g.fail("its splits are of " + Twine(places.size()) + " values, where there are " + Twine(inner->front()));
  // Each value of more axes is as many as it has elements.
  for (int64_t size : ArrayRef(*inner).drop_front()) {
    SmallVector<SmallVector<int64_t>> next;
    for (const auto &place : places)
      for (int64_t at = 0; at < size; ++at) {
        next.push_back(place);
        next.back().push_back(at);
      }
    sizes.push_back(size);
    places = std::move(next);
  }
  SmallVector<int64_t> flat;
  for (const auto &place : places)
    llvm::append_range(flat, place);
  const Dim count = static_cast<int64_t>(places.size());
  SmallVector<Value> results = {
      g.reshape(g.integers(flat, /*wide=*/true), {count, Dim(static_cast<int64_t>(sizes.size()))}),
      g.reshape(values, {count}), g.integers(sizes, /*wide=*/true)};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: starts, limits, steps, a number a row or one for all.
Result raggedRange(Operation *op, GraphBuilder &g) {
  SmallVector<int64_t> numbers[3];
  size_t rows = 1;
  Type element = g.elementOf(op->getResult(1));
  if (!element.isInteger(32) && !element.isInteger(64))
    return g.fail("there is no code for ranges of other than int32 and int64");
  bool isOne = true;
  for (auto [operand, found] : llvm::zip(op->getOperands(), numbers)) {
    auto known = getIntegers(g, operand);
    FailureOr<Dims> shape = g.getShape(operand);
    if (failed(shape))
      return failure();
    if (!known)
      return g.fail("how long its ranges are depends on the data");
    found = *known;
    if (shape->empty())
      continue;
    if (!isOne && found.size() != rows)
      return g.fail("its operands are of different sizes");
    rows = found.size();
    isOne = false;
  }
  SmallVector<int64_t> splits = {0}, values;
  for (size_t row = 0; row < rows; ++row) {
    auto of = [&](const SmallVector<int64_t> &all) { return all.size() == 1 ? all.front() : all[row]; };
    const int64_t start = of(numbers[0]), limit = of(numbers[1]), step = of(numbers[2]);
    if (step == 0)
      return g.fail("its step is 0");
    for (int64_t value = start; step > 0 ? value < limit : value > limit; value += step) {
      values.push_back(value);
      if (values.size() > kMostConstants)
        return g.fail("it has more than " + Twine(kMostConstants) + " values");
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  SmallVector<Value> results = {g.integers(splits, g.elementOf(op->getResult(0)).isInteger(64)),
                                g.integers(values, element.isInteger(64))};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: the splits of each ragged axis, values, indices of rows of the first.
Result raggedGather(Operation *op, GraphBuilder &g) {
  const unsigned depth = op->getNumOperands() - 2;
  Value values = op->getOperand(depth), indices = op->getOperand(depth + 1);
  FailureOr<SmallVector<int64_t>> shape = g.getStaticShape(indices);
  if (failed(shape))
    return failure();
  auto taken = getIntegers(g, indices);
  if (!taken)
    return g.fail(
        "which rows of a ragged tensor are taken depends on the data, so that how many values there are does");
  if (shape->empty())
    return g.fail("it takes one row of a ragged tensor");
  SmallVector<Value> results;
  // The axes of the indices are rows of one length each.
  int64_t rows = shape->front();
  for (int64_t size : ArrayRef(*shape).drop_front()) {
    SmallVector<int64_t> splits;
    for (int64_t row = 0; row <= rows; ++row)
      splits.push_back(row * size);
    results.push_back(g.integers(splits, g.elementOf(op->getOperand(0)).isInteger(64)));
    rows *= size;
  }
  for (unsigned level = 0; level < depth; ++level) {
    FailureOr<SmallVector<int64_t>> splits = getSplits(g, op->getOperand(level));
    if (failed(splits))
      return failure();
    SmallVector<int64_t> next, ends = {0};
    for (int64_t row : *taken) {
      if (row < 0 || row + 1 >= static_cast<int64_t>(splits->size()))
        return g.fail("it takes row " + Twine(row) + " of " + Twine(splits->size() - 1));
      for (int64_t at = (*splits)[row]; at < (*splits)[row + 1]; ++at)
        next.push_back(at);
      ends.push_back(static_cast<int64_t>(next.size()));
    }
    results.push_back(g.integers(ends, g.elementOf(op->getOperand(level)).isInteger(64)));
    *taken = std::move(next);
  }
  results.push_back(g.gather(values, g.integers(*taken, /*wide=*/true), 0));
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

} // namespace distc::dfg::decompositions

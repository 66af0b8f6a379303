//===- MaskedIndices.cpp - Rows by index where data decide how many there are ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A row that is read or written at the place where it is already needs no index: what
// takes chosen rows of a tensor gives the tensor, with a mask, and what puts them back
// selects. Any other index that is not there is 0 where rows are read, and -1 where
// they are written.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

/// [b, ...] for each element of the grid, whose first axis b is: the rows' view of it.
Value RowMasker::spread(Builder &g, Value value, const Dims &grid) {
  FailureOr<Dims> sizes = g.getShape(value);
  if (failed(sizes))
    return {};
  SmallVector<int64_t> multiples(sizes->size() + grid.size() - 1, 1);
  for (size_t axis = 1; axis < grid.size(); ++axis) {
    if (!grid[axis].isConstant())
      return (void)g.fail("an axis behind the batch's must have a known size"), Value();
    value = g.expandDims(value, 1);
    multiples[axis] = grid[axis].getConstant();
  }
  Dims flat = {product(grid)};
  flat.append(sizes->begin() + 1, sizes->end());
  return g.reshape(g.tile(value, multiples), flat);
}

/// [rows, ...] as [grid..., ...].
Value RowMasker::onGrid(Builder &g, Value value, const Dims &grid) {
  FailureOr<Dims> sizes = g.getShape(value);
  if (failed(sizes))
    return {};
  Dims there = grid;
  there.append(sizes->begin() + 1, sizes->end());
  return g.reshape(value, there);
}

/// Whether rows of a batch take its rows: their places are their numbers.
static bool areOfBatch(const MaskedValue *of, const MaskedValue *at) {
  return of && at && of->rows->isBatch && at->rows->getWhole()->isBatch && of->axis == 0 && at->axis == 0;
}

LogicalResult RowMasker::gather(Operation *op) {
  Value params = op->getOperand(0), indices = op->getOperand(1);
  const MaskedValue *of = getMasked(params), *at = getMasked(indices);
  if (of && at && at->numbers.among)
    areOneChoice(op, at->numbers.among, of->rows);
  std::optional<Dims> sizes = shapes.getShape(params);
  auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
  auto axis = op->getNumOperands() > 2 ? shapes.getConstant(op->getOperand(2)) : std::optional<int64_t>(0);
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  if (at && sizes && !sizes->empty() && axis == 0 && (!batchDims || batchDims.getInt() == 0) && at->axis == 0 &&
      !dfg::isHandle(params.getType())) {
    const RowNumbers &numbers = at->numbers;
    // The rows themselves.
    if (numbers.kind == RowNumbers::Number && numbers.among
            ? of && of->rows == numbers.among && of->axis == 0
            : numbers.kind == RowNumbers::Number && !of && sizes->front() == at->rows->rows) {
      RowNumbers own = of ? of->numbers : RowNumbers();
      if (std::optional<Dims> places = of ? std::nullopt : getAllPlaces(params))
        own = {RowNumbers::Coordinates, 0, nullptr, *places};
      return replace(g, op->getResult(0), params, {at->rows, 0, own, of && of->areTerms});
    }
    if (numbers.kind == RowNumbers::Coordinate && numbers.column == 0 && sizes->front() == numbers.grid.front() &&
        (!of || (of->axis == 0 && of->rows->isPrefix)))
      return replace(g, op->getResult(0), spread(g, params, numbers.grid), {at->rows, 0, {}, of && of->areTerms});
  }
  // Each row takes its own.
  if (of && at && batchDims && batchDims.getInt() > 0)
    return visitByAxis(op);
  const bool isByPlace = areOfBatch(of, at) && axis == 0;
  if (of && at && !isByPlace)
    return refuse(op, "its indices are no places that are known");
  if (at) {
    Value there = keep(g, indices, *at, 0);
    if (!there)
      return refuse(op, g.getReason());
    masked[there] = {at->rows, at->axis, {}};
    op->setOperand(1, there);
  }
  // The rows of a batch have their places for numbers; one that is not there is out of range.
  if (isByPlace) {
    Value at = op->getOperand(1);
    SmallVector<int64_t> axes =
        llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shapes.getShape(at)->size())));
    Value inside = g.less(at, getCount(g, of->rows, g.elementOf(at)));
    runBehind(op, check(g, g.reduce(dfg::AllOp::getOperationName(), inside, axes, false), at));
    masked[op->getResult(0)] = {getMasked(op->getOperand(1))->rows, 0, {}};
    return success();
  }
  // Columns of a vector of places.
  if (of && of->numbers.kind == RowNumbers::Coordinates && axis == 1)
    if (auto column = shapes.getConstant(indices); column && shapes.getShape(indices)->empty()) {
      const RowNumbers numbers = of->numbers;
      masked[op->getResult(0)] = {of->rows, 0,
                                  numbers.isVector()
                                      ? RowNumbers{RowNumbers::Number, 0, numbers.among}
                                      : RowNumbers{RowNumbers::Coordinate, *column, nullptr, numbers.grid}};
      return success();
    }
  return visitByAxis(op);
}

LogicalResult RowMasker::gatherNd(Operation *op) {
  Value params = op->getOperand(0), indices = op->getOperand(1);
  const MaskedValue *of = getMasked(params), *at = getMasked(indices);
  if (of && at && at->numbers.among)
    areOneChoice(op, at->numbers.among, of->rows);
  std::optional<Dims> sizes = shapes.getShape(params);
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  if (at && sizes && at->numbers.kind == RowNumbers::Coordinates && at->axis == 0 && !dfg::isHandle(params.getType())) {
    if (at->numbers.among) {
      if (of && of->rows == at->numbers.among && of->axis == 0)
        return replace(g, op->getResult(0), params, {at->rows, 0, of->numbers, of->areTerms});
    } else if (!of && sizes->size() >= at->numbers.grid.size() &&
               ArrayRef(*sizes).take_front(at->numbers.grid.size()) == ArrayRef(at->numbers.grid)) {
      Dims flat = {at->rows->rows};
      flat.append(sizes->begin() + at->numbers.grid.size(), sizes->end());
      return replace(g, op->getResult(0), g.reshape(params, flat), {at->rows, 0, {}});
    }
  }
  // The rows of a batch have their places for numbers, also those that are not there, which have another's values.
  if (areOfBatch(of, at) && !dfg::isHandle(params.getType())) {
    masked[op->getResult(0)] = {at->rows, 0, {}};
    return success();
  }
  if (of && at)
    return refuse(op, "its indices are no places that are known");
  if (at) {
    Value there = keep(g, indices, *at, 0);
    if (!there)
      return refuse(op, g.getReason());
    masked[there] = {at->rows, at->axis, {}};
    op->setOperand(1, there);
  }
  return visitByAxis(op);
}

/// Operands: data, segments, how many.
LogicalResult RowMasker::unsortedSegment(Operation *op) {
  Value data = op->getOperand(0), ids = op->getOperand(1), count = op->getOperand(2);
  const MaskedValue *of = getMasked(data), *at = getMasked(ids);
  if (!of || !at)
    return visitByAxis(op);
  if (of->rows != at->rows || of->axis != 0 || at->axis != 0)
    return refuse(op, "its rows and their segments are not of one choice");
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  const Selection *rows = at->rows;
  auto size = shapes.getElements(count);
  llvm::SetVector<const Selection *> counted;
  if (auto it = sized.find(count); it != sized.end())
    counted = it->second;
  const bool isSum = llvm::isa<dfg::UnsortedSegmentSumOp>(op);
  if (!isSum && of->areTerms)
    return refuse(op, "it is not linear in rows that are to be added up");
  auto hasSize = [&](Dim dim) { return size && size->size() == 1 && size->front() == dim; };
  // Rows that are segments, at their places.
  if (isSum && at->numbers.kind == RowNumbers::Number && hasSize(rows->rows)) {
    const Selection *among = at->numbers.among;
    if (among ? counted.size() == 1 && counted.front() == among->getWhole() : counted.empty())
      return replace(g, op->getResult(0), keep(g, data, *of, 0),
                     {among, 0, {}, of->areTerms || (among && among->repeats)});
  }
  if (isSum && !rows->repeats && at->numbers.kind == RowNumbers::Coordinate && at->numbers.column == 0 &&
      hasSize(at->numbers.grid.front()) && (counted.empty() || (counted.size() == 1 && counted.front()->isPrefix))) {
    const Dims grid = at->numbers.grid;
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(grid.size())));
    return replace(g, op->getResult(0), g.sum(onGrid(g, keep(g, data, *of, 0), grid), axes),
                   {counted.empty() ? nullptr : divide(g, counted.front(), grid.front()), 0, {}});
  }
  // The largest of a row's, whose places are its columns.
  if (!rows->repeats && !isSum && llvm::isa<FloatType>(g.elementOf(data)) &&
      at->numbers.kind == RowNumbers::Coordinate && at->numbers.column == 0 && hasSize(at->numbers.grid.front()) &&
      counted.empty()) {
    const Dims grid = at->numbers.grid;
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(grid.size())));
    const APFloat largest = APFloat::getLargest(llvm::cast<FloatType>(g.elementOf(data)).getFloatSemantics());
    const bool isMax = llvm::isa<dfg::UnsortedSegmentMaxOp>(op), isMin = llvm::isa<dfg::UnsortedSegmentMinOp>(op);
    double otherwise = isMax ? -largest.convertToDouble() : isMin ? largest.convertToDouble() : 1;
    StringRef reduction = isMax   ? dfg::MaxOp::getOperationName()
                          : isMin ? dfg::MinOp::getOperationName()
                                  : dfg::ProdOp::getOperationName();
    return replace(g, op->getResult(0),
                   g.reduce(reduction, onGrid(g, keep(g, data, *of, otherwise), grid), axes, false));
  }
  const Selection *asked = nullptr;
  if (!counted.empty() && !(asked = getRowsByPlace(g, counted, size)))
    return refuse(op, "as many segments are asked for");
  if (rows->repeats && !of->areTerms)
    return refuse(op, "distinct rows are not summed up");
  // Among distinct indices, of which -1 is one, each row has a place, also one that is not there: what is added to it
  // is nothing. So sums by them stay what optimizers make of a gradient's rows.
  auto distinct = ids.getDefiningOp<dfg::UniqueOp>();
  const bool hasPlaces = isSum && distinct && ids == distinct->getResult(1) &&
                         distinct->getOperand(0).getDefiningOp() &&
                         distinct->getOperand(0).getDefiningOp()->hasAttr(dfg::kPaddingAttr);
  Value named = hasPlaces ? ids : keepIndices(g, ids, *at), there = isSum ? keep(g, data, *of, 0) : data;
  if (!named || !there)
    return refuse(op, g.getReason());
  op->setOperand(0, there);
  op->setOperand(1, named);
  if (asked)
    masked[op->getResult(0)] = {asked, 0, {}};
  return success();
}

/// Where as many rows are asked for as a batch has, or a multiple: those rows, whose places are their numbers.
const Selection *RowMasker::getRowsByPlace(Builder &g, const llvm::SetVector<const Selection *> &counted,
                                           const std::optional<Dims> &sizes) {
  if (counted.size() != 1 || !counted.front()->isBatch || !sizes || sizes->empty() ||
      !llvm::all_of(ArrayRef(*sizes).drop_front(), [](Dim size) { return size.isConstant(); }))
    return nullptr;
  return divide(g, counted.front(), sizes->front());
}

/// Operands: data and segments in order; of a sparse one the rows of the data between them.
LogicalResult RowMasker::segments(Operation *op) {
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  const bool isSparse = op->getNumOperands() == 3;
  const MaskedValue *at = getMasked(op->getOperand(isSparse ? 2 : 1));
  if (!at || at->axis != 0 || at->numbers.kind != RowNumbers::Coordinate || at->numbers.column != 0)
    return refuse(op, "its segments are not the rows that they were chosen from");
  const Selection *rows = at->rows;
  const Dims grid = at->numbers.grid;
  Value data = op->getOperand(0);
  if (rows->repeats || (isMasked(data) && getMasked(data)->areTerms))
    return refuse(op, "distinct rows are not summed up");
  if (isSparse) {
    const MaskedValue *taken = getMasked(op->getOperand(1)), *of = getMasked(data);
    if (!taken || taken->rows != rows || taken->axis != 0)
      return refuse(op, "its rows and their segments are not of one choice");
    const RowNumbers &numbers = taken->numbers;
    if (of ? numbers.kind != RowNumbers::Number || numbers.among != of->rows || of->axis != 0 : false)
      return refuse(op, "its indices are no places that are known");
    if (!of)
      data = g.gather(data, keep(g, op->getOperand(1), *taken, 0), 0);
  } else if (const MaskedValue *of = getMasked(data); !of || of->rows != rows || of->axis != 0) {
    return refuse(op, "its rows and their segments are not of one choice");
  }
  const bool isMax = llvm::isa<dfg::SegmentMaxOp>(op), isMin = llvm::isa<dfg::SegmentMinOp>(op),
             isProd = llvm::isa<dfg::SegmentProdOp>(op);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(grid.size())));
  Type element = g.elementOf(data);
  if ((isMax || isMin) && !llvm::isa_and_nonnull<FloatType>(element))
    return refuse(op, "of integers there is none of no rows");
  double otherwise = isMax    ? -std::numeric_limits<double>::infinity()
                     : isMin  ? std::numeric_limits<double>::infinity()
                     : isProd ? 1
                              : 0;
  Value there = onGrid(g, keep(g, data, {rows, 0, {}}, otherwise), grid);
  StringRef reduction = isMax    ? dfg::MaxOp::getOperationName()
                        : isMin  ? dfg::MinOp::getOperationName()
                        : isProd ? dfg::ProdOp::getOperationName()
                                 : dfg::SumOp::getOperationName();
  Value result = g.reduce(reduction, there, axes, false);
  FailureOr<Dims> sizes = g.getShape(result);
  auto asColumn = [&](Value value) {
    for (size_t axis = 1; succeeded(sizes) && axis < sizes->size(); ++axis)
      value = g.expandDims(value, -1);
    return value;
  };
  Value count = g.sum(onGrid(g, g.cast(rows->mask, isMax || isMin ? Type(builder.getI32Type()) : element), grid), axes);
  if (isMax || isMin)
    result = g.select(asColumn(g.less(g.integer(0), count)), result, g.scalar(element, 0));
  if (llvm::isa<dfg::SegmentMeanOp, dfg::SparseSegmentMeanOp, dfg::SparseSegmentSqrtNOp>(op)) {
    count = g.maximum(count, g.scalar(element, 1));
    result = g.div(result, asColumn(llvm::isa<dfg::SparseSegmentSqrtNOp>(op) ? g.make<dfg::SqrtOp>(count) : count));
  }
  return replace(g, op->getResult(0), result, {getNonEmptyPrefix(g, rows, grid), 0, {}});
}

/// Operands: indices, updates, the shape.
LogicalResult RowMasker::scatterNd(Operation *op) {
  Value indices = op->getOperand(0), updates = op->getOperand(1);
  const MaskedValue *at = getMasked(indices), *of = getMasked(updates);
  if (!at || !of || at->rows != of->rows || at->axis != 0 || of->axis != 0 || at->rows->repeats || of->areTerms)
    return refuse(op, "its updates and their indices are not of one choice");
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  auto sizes = shapes.getElements(op->getOperand(2));
  llvm::SetVector<const Selection *> counted;
  if (auto it = sized.find(op->getOperand(2)); it != sized.end())
    counted = it->second;
  const RowNumbers &numbers = at->numbers;
  if (numbers.kind == RowNumbers::Coordinates && sizes) {
    const Dims grid = numbers.among ? Dims{at->rows->rows} : numbers.grid;
    bool isPlace =
        sizes->size() >= grid.size() && ArrayRef(*sizes).take_front(grid.size()) == ArrayRef(grid) &&
        (numbers.among ? counted.size() == 1 && counted.front() == numbers.among->getWhole() : counted.empty());
    if (isPlace) {
      Value there = keep(g, updates, *of, 0);
      return replace(g, op->getResult(0), numbers.among ? there : onGrid(g, there, grid), {numbers.among, 0, {}});
    }
  }
  const Selection *asked = nullptr;
  if (!counted.empty() && !(asked = getRowsByPlace(g, counted, sizes)))
    return refuse(op, "as many rows are asked for");
  Value named = keepIndices(g, indices, *at), there = keep(g, updates, *of, 0);
  if (!named || !there)
    return refuse(op, g.getReason());
  op->setOperand(0, named);
  op->setOperand(1, there);
  if (asked)
    masked[op->getResult(0)] = {asked, 0, {}};
  return success();
}

/// Operands: a tensor, indices, updates.
LogicalResult RowMasker::tensorScatter(Operation *op) {
  Value tensor = op->getOperand(0), indices = op->getOperand(1), updates = op->getOperand(2);
  const MaskedValue *at = getMasked(indices), *of = getMasked(updates);
  if (isMasked(tensor) || !at || at->axis != 0 || at->rows->repeats ||
      (of && (of->rows != at->rows || of->axis != 0 || of->areTerms)))
    return refuse(op, "its updates and their indices are not of one choice");
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  std::optional<Dims> sizes = shapes.getShape(tensor);
  const Dims grid = at->numbers.grid;
  if (llvm::isa<dfg::TensorScatterUpdateOp>(op) && of && sizes && at->numbers.kind == RowNumbers::Coordinates &&
      !at->numbers.among && sizes->size() >= grid.size() &&
      ArrayRef(*sizes).take_front(grid.size()) == ArrayRef(grid)) {
    Value mask = onGrid(g, at->rows->mask, grid);
    for (size_t axis = grid.size(); axis < sizes->size(); ++axis)
      mask = g.expandDims(mask, -1);
    return replace(g, op->getResult(0), g.select(mask, onGrid(g, updates, grid), tensor));
  }
  if (!of)
    return refuse(op, "its updates and their indices are not of one choice");
  Value named = keepIndices(g, indices, *at);
  if (!named)
    return refuse(op, g.getReason());
  op->setOperand(1, named);
  return success();
}

/// The parts of a partition, back at their places.
LogicalResult RowMasker::stitch(Operation *op) {
  const unsigned count = op->getNumOperands() / 2;
  const Selection *whole = nullptr;
  llvm::SmallPtrSet<const Selection *, 4> seen;
  bool areTerms = false;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value result;
  for (unsigned i = 0; i < count; ++i) {
    Value data = op->getOperand(count + i);
    const MaskedValue *at = getMasked(op->getOperand(i)), *of = getMasked(data);
    if (!at || !of || at->rows != of->rows || at->axis != 0 || of->axis != 0 ||
        at->numbers.kind != RowNumbers::Number || at->numbers.among != at->rows->among)
      return refuse(op, "they are not the parts of one partition with their places");
    if (i > 0 && of->areTerms != areTerms)
      return refuse(op, "some of its rows are to be added up");
    areTerms = of->areTerms;
    if (i == 0)
      for (const auto &known : selections)
        if (llvm::is_contained(known->parts, at->rows) && (!whole || known->parts.size() == count))
          whole = known.get();
    if (!whole || !llvm::is_contained(whole->parts, at->rows) || !seen.insert(at->rows).second)
      return refuse(op, "they are not the parts of one partition with their places");
    result = result ? keep(g, data, *of, result) : data;
  }
  if (whole->parts.size() != count)
    return refuse(op, "some parts of the partition are left out");
  return replace(g, op->getResult(0), result, {whole->among, 0, {}, areTerms});
}

/// Whether the distinct values name rows that are read. An optimizer's name those that it updates, and maybe reads of
/// slots.
bool RowMasker::isLookedUp(Value distinct) const {
  constexpr size_t kMaxNodes = 64;
  const bool areUpdated = llvm::any_of(distinct.getUses(), [](OpOperand &use) {
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(use.getOwner());
    return update && update.getIndicesOperand() == static_cast<int>(use.getOperandNumber());
  });
  llvm::SetVector<Operation *> users;
  users.insert_range(distinct.getUsers());
  for (size_t i = 0; i < users.size() && i < kMaxNodes; ++i) {
    Operation *user = users[i];
    const bool reads =
        llvm::isa<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>(user) && user->getOperand(0) != distinct;
    if (reads || llvm::isa<dfg::DynamicPartitionOp>(user))
      return needed.contains(user) && (!areUpdated || seen.contains(user));
    if (llvm::isa<dfg::ScalarInterface, dfg::ReshapeOp>(user))
      users.insert_range(user->getUsers());
  }
  return false;
}

/// What the loss and the fetches are computed of.
void RowMasker::findSeen() {
  llvm::StringSet<> names;
  for (const std::string &tensor : getFetchedTensors(graph))
    names.insert(StringRef(tensor).split(':').first);
  SmallVector<Operation *> pending;
  for (Operation &op : graph.getBody().front())
    if (names.contains(dfg::getNodeName(&op)))
      pending.push_back(&op);
  while (!pending.empty())
    if (Operation *op = pending.pop_back_val(); seen.insert(op).second)
      for (Value operand : op->getOperands())
        pending.push_back(operand.getDefiningOp());
}

/// The values themselves, as often as they are there. What works row by row gives the same for equal ones, and what is
/// looked up by their positions is that of each.
LogicalResult RowMasker::repeatRows(Operation *op) {
  Value x = op->getOperand(0);
  std::optional<Dims> sizes = shapes.getShape(x);
  const MaskedValue *at = getMasked(x);
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  const Selection *rows = at ? at->rows : nullptr;
  if (!rows) {
    Type flag = builder.getI1Type();
    Value all = g.make<dfg::FillOp>({g.pack(g.sizeOf(x, 0, builder.getI32Type()), 0), g.scalar(flag, 1)}, {}, flag);
    rows = add({all, sizes->front(), nullptr, Value(), {}, {}, false, true});
  }
  const Selection *distinct = add({rows->mask, rows->rows, rows, x, {}, {}, true});
  if (failed(replace(g, op->getResult(0), x, {distinct, 0, {}})))
    return failure();
  return replace(g, op->getResult(1), numberRows(g, rows, g.elementOf(op->getResult(1))),
                 {rows, 0, {RowNumbers::Number, 0, distinct}});
}

/// What is not there is -1, which names no row.
LogicalResult RowMasker::unique(Operation *op) {
  const MaskedValue *rows = getMasked(op->getOperand(0));
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Type element = g.elementOf(op->getOperand(0));
  if (rows->axis != 0 || op->getNumOperands() != 1 || (!element.isInteger(32) && !element.isInteger(64)))
    return refuse(op, "distinct values are found among indices");
  const MaskedValue of = *rows;
  Value there = keepIndices(g, op->getOperand(0), of);
  if (!there)
    return refuse(op, g.getReason());
  op->setOperand(0, there);
  masked[op->getResult(1)] = {of.rows, 0, {}};
  return success();
}

} // namespace distc

//===- Selections.cpp - Which rows data choose -------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

const Selection *RowMasker::add(Selection selection) {
  selections.push_back(std::make_unique<Selection>(std::move(selection)));
  return selections.back().get();
}

/// `op` runs behind the node of that name.
void runBehind(Operation *op, StringAttr name) {
  if (!name)
    return;
  auto given = llvm::dyn_cast_or_null<ArrayAttr>(op->getDiscardableAttr(dfg::kControlAttr));
  SmallVector<Attribute> control(given ? given.getValue() : ArrayRef<Attribute>());
  control.push_back(name);
  op->setDiscardableAttr(dfg::kControlAttr, ArrayAttr::get(op->getContext(), control));
}

static Value isSet(dfg::GraphBuilder &g, Value condition) {
  if (!condition || g.elementOf(condition).isInteger(1))
    return condition;
  return g.make<dfg::NotEqualOp>({condition, g.scalar(g.elementOf(condition), 0)}, {}, g.builder.getI1Type());
}

Dim product(ArrayRef<Dim> sizes) {
  Dim all = 1;
  for (Dim size : sizes)
    all = all * size;
  return all;
}

LogicalResult RowMasker::selectWhere(Operation *op) {
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value condition = op->getOperand(0);
  std::optional<Dims> sizes = shapes.getShape(condition);
  if (!sizes || sizes->empty())
    return refuse(op, "its operand's axes must be known");
  Type wide = builder.getI64Type();
  if (const MaskedValue *of = getMasked(condition)) {
    if (sizes->size() != 1 || !of->rows || !of->rows->isOfBatch())
      return refuse(op, "of rows of the batch that were chosen before, a vector chooses");
    const Selection *among = of->rows;
    RowCondition asked = getCondition(condition);
    const Selection *rows = findSelection(asked, among, among->rows);
    if (!rows)
      rows = add({g.both(among->mask, isSet(g, condition)), among->rows, among, condition, asked, {}, among->repeats});
    Value numbers = g.reshape(numberRows(g, among, wide), {rows->rows, Dim(1)});
    return replace(g, op->getResult(0), numbers, {rows, 0, {RowNumbers::Coordinates, 0, among}});
  }
  Dim all = product(*sizes);
  if (!all.isMultipleOfBatch() || all.getScale() <= 0)
    return refuse(op,
                  "only rows of the batch are chosen; there are " + Twine(all.isKnown() ? "others" : "unknown ones"));
  RowCondition asked = getCondition(condition);
  const Selection *rows = findSelection(asked, nullptr, all);
  if (!rows) {
    Selection made{g.reshape(isSet(g, condition), {all}), all, nullptr, condition, asked};
    auto placeholder = condition.getDefiningOp<dfg::PlaceholderOp>();
    made.isBatch = made.isPrefix = placeholder && placeholder->hasAttr(dfg::kValidityAttr);
    rows = add(std::move(made));
  }
  SmallVector<Value> columns;
  for (size_t axis = 0; axis < sizes->size(); ++axis) {
    Value along = g.positions(condition, axis, wide);
    for (size_t behind = axis + 1; behind < sizes->size(); ++behind)
      along = g.expandDims(along, -1);
    if (sizes->size() > 1)
      along = g.broadcastTo(along, g.make<dfg::ShapeOp>(condition, {}, builder.getI32Type()));
    columns.push_back(g.reshape(along, {all, Dim(1)}));
  }
  return replace(g, op->getResult(0), g.concat(columns, 1), {rows, 0, {RowNumbers::Coordinates, 0, nullptr, *sizes}});
}

/// Each row of `among`, or of all, is in one of `count` parts.
const Selection *RowMasker::findPartition(Builder &g, Value parts, const Selection *among, int64_t count) {
  for (const auto &known : selections)
    if (known->among == among && static_cast<int64_t>(known->parts.size()) == count &&
        haveSameElements(known->origin, parts))
      return known.get();
  FailureOr<Dims> sizes = g.getShape(parts);
  if (failed(sizes))
    return nullptr;
  Dim all = product(*sizes);
  Value numbers = g.reshape(parts, {all});
  auto *whole = const_cast<Selection *>(add({Value(), all, among, parts}));
  Type element = g.elementOf(parts);
  for (int64_t part = 0; part < count; ++part) {
    RowCondition asked = getCondition(parts, part);
    const Selection *rows = findSelection(asked, among, all);
    if (!rows) {
      Value mask = g.equal(numbers, g.scalar(element, static_cast<double>(part)));
      if (among)
        mask = g.both(mask, among->mask);
      rows = add({mask, all, among, parts, asked, {}, among && among->repeats});
    }
    whole->parts.push_back(rows);
  }
  // As TensorFlow does: a part that is not there would lose a row.
  Value there = among ? g.select(among->mask, numbers, g.scalar(element, 0)) : numbers;
  Value fits =
      g.both(g.lessEqual(g.scalar(element, 0), there), g.less(there, g.scalar(element, static_cast<double>(count))));
  runBehind(g.node, check(g, g.reduce(dfg::AllOp::getOperationName(), fits, {0}, false), numbers));
  return whole;
}

/// Whether `value` is 0, 1, ... of a tensor of `rows` elements.
bool RowMasker::isRange(Value value, Dim rows) const {
  while (Operation *op = value.getDefiningOp()) {
    if (llvm::isa<dfg::RangeOp>(op)) {
      std::optional<Dims> sizes = shapes.getShape(value);
      return shapes.getConstant(op->getOperand(0)) == 0 && shapes.getConstant(op->getOperand(2)) == 1 && sizes &&
             sizes->front() == rows;
    }
    if (!llvm::isa<dfg::IdentityOp, dfg::CastOp, dfg::ReshapeOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

LogicalResult RowMasker::selectParts(dfg::DynamicPartitionOp op) {
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value data = op.getData(), parts = op.getPartitions();
  std::optional<Dims> of = shapes.getShape(data), sizes = shapes.getShape(parts);
  const MaskedValue *rows = getMasked(parts), *from = getMasked(data);
  if (!of || !sizes || sizes->empty())
    return refuse(op, "its operands' axes must be known");
  if ((rows != nullptr) != (from != nullptr) ||
      (rows && (rows->rows != from->rows || rows->axis != 0 || from->axis != 0 || sizes->size() != 1)))
    return refuse(op, "its data and its partitions have other rows");
  // Others than the batch's as well: the indices of the batch and of sampled candidates behind each other.
  Dim all = product(*sizes);
  const bool isOfBatch = all.isMultipleOfBatch() && all.getScale() > 0;
  if (!isOfBatch && (!all.isKnown() || all.isBound() || all.dependsOnWholeBatch() || !all.growsWithBatch() ||
                     all.getSmallest() < 1 || sizes->size() != 1 || rows))
    return refuse(op, "how many rows are partitioned does not follow from the batch");
  const Selection *whole = findPartition(g, parts, rows ? rows->rows : nullptr, op->getNumResults());
  RowNumbers numbers = from ? from->numbers : RowNumbers();
  const bool areTerms = from && from->areTerms;
  if (!from && isRange(data, all))
    numbers = {RowNumbers::Number, 0, nullptr};
  if (sizes->size() > 1) {
    Dims flat = {all};
    flat.append(of->begin() + sizes->size(), of->end());
    data = g.reshape(data, flat);
  }
  if (!whole)
    return refuse(op, "the shape of its partitions must be known");
  for (OpResult result : op->getResults())
    if (failed(replace(g, result, data, {whole->parts[result.getResultNumber()], 0, numbers, areTerms})))
      return failure();
  return success();
}

Value RowMasker::getCount(Builder &g, const Selection *rows, Type element) {
  if (rows->repeats)
    return (void)g.fail("distinct rows are not counted"), Value();
  Value &count = counts[{rows, element}];
  if (!count)
    count = g.sum(g.cast(rows->mask, element), {0});
  return count;
}

/// Of each row that is there its number among those that are.
Value RowMasker::numberRows(Builder &g, const Selection *rows, Type element) {
  return g.make<dfg::CumsumOp>({g.cast(rows->mask, element), g.integer(0)}, g.flag("exclusive", true));
}

/// The same rows as `size` elements of an axis: `outer` times all of them, each as often as that takes; null where it
/// is no multiple.
const Selection *RowMasker::divide(Builder &g, const Selection *rows, Dim size, int64_t outer) {
  rows = rows->getWhole();
  if (!rows->isOfBatch())
    return outer == 1 && size == rows->rows ? rows : nullptr;
  const int64_t least = rows->rows.getScale() * outer;
  if (!size.isMultipleOfBatch() || size.getScale() <= 0 || size.getScale() % least != 0)
    return nullptr;
  size = Dim::batch(size.getScale());
  const int64_t inner = size.getScale() / least;
  if (outer == 1 && inner == 1)
    return rows;
  const Selection *&made = divided[{rows, {outer, inner}}];
  if (made)
    return made;
  Value mask = rows->mask;
  if (inner > 1)
    mask = g.reshape(g.tile(g.expandDims(mask, 1), {1, inner}), {rows->rows * Dim(inner)});
  if (outer > 1)
    mask = g.tile(mask, {outer});
  if (!mask)
    return nullptr;
  Selection selection{mask, size, nullptr, rows->origin};
  selection.repeats = rows->repeats;
  selection.isAll = rows->isAll;
  selection.isPrefix = rows->isPrefix && outer == 1;
  selection.isBatch = rows->isBatch && outer == 1;
  selection.of = rows;
  selection.outer = outer;
  return made = add(std::move(selection));
}

/// Where a reshape makes one axis of the rows and what lies before or behind them, or takes it apart again.
const Selection *RowMasker::reshapeRows(Operation *op, const MaskedValue &from, const BatchAxis &to) {
  std::optional<Dims> before = shapes.getShape(op->getOperand(0)), behind = shapes.getShape(op->getResult(0));
  if (!op->hasTrait<dfg::Reshapes>() || !before || !behind)
    return nullptr;
  // Elements are in row-major order: what lies before the rows does so on both sides.
  Dim outer = product(ArrayRef(*before).take_front(from.axis)), others = product(ArrayRef(*behind).take_front(to.axis));
  if (!outer.isConstant() || !others.isConstant() || others.getConstant() <= 0)
    return nullptr;
  const int64_t times = outer.getConstant() * from.rows->outer;
  if (times % others.getConstant() != 0)
    return nullptr;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  return divide(g, from.rows, (*behind)[to.axis], times / others.getConstant());
}

/// The rows of the grid up to the last one in which something is.
const Selection *RowMasker::getNonEmptyPrefix(Builder &g, const Selection *rows, const Dims &grid) {
  if (rows->fillsGrid)
    return nullptr;
  for (auto [of, known] : prefixes[rows])
    if (of == grid)
      return known;
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(grid.size())));
  Value any = g.reduce(dfg::AnyOp::getOperationName(), g.reshape(rows->mask, grid), axes, false);
  Value behind = g.make<dfg::CumsumOp>({g.cast(any, g.builder.getI32Type()), g.integer(0)}, g.flag("reverse", true));
  Value mask = g.less(g.integer(0), behind);
  const Selection *prefix = add({mask, grid.front(), nullptr, rows->origin, {}, {}, false, false, true});
  prefixes[rows].push_back({grid, prefix});
  return prefix;
}

Value RowMasker::keep(Builder &g, Value value, const MaskedValue &rows, Value otherwise) {
  FailureOr<Dims> sizes = g.getShape(value);
  if (failed(sizes))
    return {};
  Value mask = rows.rows->mask;
  for (int64_t axis = rows.axis + 1; axis < static_cast<int64_t>(sizes->size()); ++axis)
    mask = g.expandDims(mask, -1);
  return g.select(mask, value, otherwise);
}

Value RowMasker::keep(Builder &g, Value value, const MaskedValue &rows, double otherwise) {
  return keep(g, value, rows, g.scalar(g.elementOf(value), otherwise));
}

/// Of rows that are not there -1, which names none.
Value RowMasker::keepIndices(Builder &g, Value indices, const MaskedValue &rows) {
  Value there = keep(g, indices, rows, -1);
  if (there)
    there.getDefiningOp()->setDiscardableAttr(dfg::kPaddingAttr, g.builder.getUnitAttr());
  return there;
}

/// Ends the program where `condition` does not hold; the name of the node that does.
StringAttr RowMasker::check(Builder &g, Value condition, Value shown) {
  if (g.failed() || !condition)
    return {};
  StringAttr name = g.builder.getStringAttr(dfg::getNodeName(g.node) + "/rows_fit");
  dfg::AssertOp::create(g.builder, NameLoc::get(name), condition, ValueRange(shown), /*summarize=*/3);
  return name;
}

/// Whether it is computed of more than sizes, which are all known where the batch's is.
bool RowMasker::isNumberOfData(Value count) const {
  SmallVector<Value> pending = {count};
  llvm::DenseSet<Operation *> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto elements = shapes.getElements(value);
    auto isNumber = [](Dim element) { return element.isKnown() && !element.isBound(); };
    if (elements && llvm::all_of(*elements, isNumber))
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || (op->getNumOperands() == 0 && !llvm::isa<dfg::ConstOp>(op)) || !isMemoryEffectFree(op))
      return true;
    if (!llvm::isa<dfg::ShapeOp, dfg::ShapeNOp, dfg::SizeOp, dfg::RankOp>(op) && seen.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  }
  return false;
}

/// The k largest elements, as hard examples are mined: all in their order, of which the first are there.
LogicalResult RowMasker::selectLargest(dfg::TopKV2Op op) {
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value input = op.getInput(), count = op.getK();
  std::optional<Dims> sizes = shapes.getShape(input);
  if (isMasked(input) || sized.contains(count))
    return refuse(op, "it orders what was chosen before");
  if (!sizes || sizes->size() != 1)
    return refuse(op,
                  "it takes as many of each row: take the largest of a vector, or a number of them that is known and "
                  "mask the others");
  if (!sizes->front().isMultipleOfBatch() || sizes->front().getScale() <= 0)
    return refuse(op, "only rows of the batch are chosen");
  const Dim all = sizes->front();
  Type element = g.elementOf(count);
  Value size = g.sizeOf(input, 0, element);
  // As TensorFlow does.
  Value fits = g.both(g.lessEqual(g.scalar(element, 0), count), g.lessEqual(count, size));
  StringAttr checked = check(g, fits, count);
  auto ordered = dfg::TopKV2Op::create(g.builder, NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(op) + "/all")),
                                       op->getResultTypes(), ValueRange{input, size}, op->getAttrs());
  ordered->removeDiscardableAttr(dfg::kControlAttr);
  ordered.setSorted(true);
  if (failed(ordered.inferShapes(shapes)))
    return failure();
  runBehind(ordered, checked);
  const Selection *rows = add({g.less(g.positions(ordered.getIndices(), 0, element), count), all, nullptr, count});
  if (failed(replace(g, op->getResult(0), ordered.getValues(), {rows, 0, {}})))
    return failure();
  return replace(g, op->getResult(1), ordered.getIndices(), {rows, 0, {}});
}

/// Whether `size` is among `set`; none where that depends on the batch's size.
static std::optional<bool> isMember(Dim size, ArrayRef<Dim> set) {
  bool decided = true;
  for (Dim other : set) {
    if (size == other)
      return true;
    decided &= size.isConstant() && other.isConstant();
  }
  return decided ? std::optional(false) : std::nullopt;
}

/// tf.losses asks by the differences of two sets an axis whether weights and losses have axes of other sizes. What is
/// in them follows from the shapes.
LogicalResult RowMasker::subtractSizes(Operation *op) {
  auto sizes = shapes.getElements(op->getOperand(0)), others = shapes.getElements(op->getOperand(1));
  auto first = shapes.getShape(op->getOperand(0)), second = shapes.getShape(op->getOperand(1));
  auto kind = dfg::getSourceAttribute<StringAttr>(op, "set_operation");
  const bool isRow = first && first->size() == 2 && (*first)[0].isConstant() && (*first)[1].isConstant();
  if (!sizes || !others || !isRow || !second || second->size() != 2 || !((*first)[0] == (*second)[0]) ||
      sizes->empty() || !kind || kind.getValue() != "a-b")
    return refuse(op, "only the difference of two lists of sizes that are known is followed");
  const size_t count = (*first)[0].getConstant();
  SmallVector<int64_t> left, places;
  int64_t most = 0;
  for (size_t row = 0; row < count; ++row) {
    SmallVector<int64_t> own;
    ArrayRef<Dim> all = ArrayRef(*sizes).slice(row * (sizes->size() / count), sizes->size() / count);
    ArrayRef<Dim> without = ArrayRef(*others).slice(row * (others->size() / count), others->size() / count);
    for (Dim size : all) {
      std::optional<bool> removed = isMember(size, without);
      if (!size.isKnown() || (!removed && !llvm::all_of(without, [](Dim other) { return other.isKnown(); })))
        return refuse(op, "so are sizes that it compares: make them numbers (maxlen of tf.sequence_mask, slices up to "
                          "a constant), or compute the weighted loss without tf.losses");
      if (!removed || (!*removed && !size.isConstant()))
        return refuse(op, "whether the batch's size is among others depends on the batch");
      if (!*removed && !llvm::is_contained(own, size.getConstant()))
        own.push_back(size.getConstant());
    }
    llvm::sort(own);
    for (size_t i = 0; i < own.size(); ++i)
      places.append({static_cast<int64_t>(row), static_cast<int64_t>(i)});
    llvm::append_range(left, own);
    most = std::max(most, static_cast<int64_t>(own.size()));
  }
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value values = g.cast(g.integers(left, /*wide=*/true), g.elementOf(op->getResult(1)));
  Value at = g.reshape(g.integers(places, /*wide=*/true), {Dim(static_cast<int64_t>(left.size())), Dim(2)});
  if (failed(replace(g, op->getResult(0), at)) || failed(replace(g, op->getResult(1), values)))
    return failure();
  return replace(g, op->getResult(2), g.integers({static_cast<int64_t>(count), most}, /*wide=*/true));
}

} // namespace distc

//===- MaskedRepeats.cpp - Rows that are repeated as often as lengths say -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A ragged tensor's values are rows that were chosen from a matrix, so many of each of
// its rows. Which row of the batch each belongs to, TensorFlow computes by tf.repeat of
// their numbers by the lengths, which is a choice from a matrix that is as wide as the
// longest. It is that of the values, where the lengths are those that they were chosen by.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/SameValues.h"
#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

static bool isInteger(Value value) {
  Type element = dfg::GraphBuilder::elementOf(value);
  return element.isInteger() && !element.isInteger(1);
}

static std::optional<int64_t> getInteger(Value value) {
  while (auto cast = value.getDefiningOp<dfg::CastOp>())
    value = cast->getOperand(0);
  auto constant = value.getDefiningOp<dfg::ConstOp>();
  auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat || !splat.getElementType().isInteger())
    return std::nullopt;
  return splat.getSplatValue<APInt>().getSExtValue();
}

static bool hasRank(Value value, int64_t rank) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}

/// The same integers, before they were converted or got further axes of size 1.
static Value stripIntegers(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool isCast = llvm::isa<dfg::CastOp>(op) && isInteger(value) && isInteger(op->getOperand(0));
    // To as many as there are; one that is repeated says so in its type.
    const bool isBroadcast = llvm::isa<dfg::BroadcastToOp>(op) && hasRank(value, 1) && hasRank(op->getOperand(0), 1) &&
                             llvm::cast<RankedTensorType>(op->getOperand(0).getType()).isDynamicDim(0);
    if (!isCast && !isBroadcast && !llvm::isa<dfg::ExpandDimsOp>(op) && !op->hasTrait<dfg::Forwards>())
      return value;
    value = op->getOperand(0);
  }
  return value;
}

/// Of row splits, 0 and the sums of the lengths, the lengths.
static Value getLengthsOfSplits(Value splits) {
  splits = stripIntegers(splits);
  auto concat = splits.getDefiningOp<dfg::ConcatV2Op>();
  if (!concat || concat->getNumOperands() != 3 || getInteger(concat->getOperand(0)) != 0 ||
      getInteger(concat->getOperand(2)) != 0)
    return {};
  auto zero = llvm::dyn_cast<RankedTensorType>(concat->getOperand(0).getType());
  auto sums = stripIntegers(concat->getOperand(1)).getDefiningOp<dfg::CumsumOp>();
  auto isSet = [&](StringRef name) {
    auto flag = sums->getAttrOfType<BoolAttr>(name);
    return flag && flag.getValue();
  };
  if (!zero || zero.getRank() != 1 || zero.getDimSize(0) != 1 || !sums || isSet("exclusive") || isSet("reverse") ||
      getInteger(sums->getOperand(1)) != 0)
    return {};
  return sums->getOperand(0);
}

/// splits[1:], or splits[:-1].
static Value getSlicedSplits(Value value, bool fromSecond) {
  auto slice = stripIntegers(value).getDefiningOp<dfg::StridedSliceOp>();
  if (!slice || !hasRank(slice->getOperand(0), 1) || getInteger(slice->getOperand(3)) != 1)
    return {};
  auto mask = [&](StringRef name) {
    auto bits = slice->getAttrOfType<IntegerAttr>(name);
    return bits ? bits.getInt() : 0;
  };
  if (mask("ellipsis_mask") || mask("new_axis_mask") || mask("shrink_axis_mask"))
    return {};
  const bool fromStart = mask("begin_mask") || getInteger(slice->getOperand(1)) == 0;
  const bool isPart = fromSecond ? getInteger(slice->getOperand(1)) == 1 && !mask("begin_mask") && mask("end_mask")
                                 : fromStart && getInteger(slice->getOperand(2)) == -1 && !mask("end_mask");
  return isPart ? slice->getOperand(0) : Value();
}

/// The lengths that these were computed of, by way of row splits.
static Value traceLengths(Value lengths) {
  constexpr int kMaxSteps = 8;
  for (int step = 0; step < kMaxSteps; ++step) {
    lengths = stripIntegers(lengths);
    auto sub = lengths.getDefiningOp<dfg::SubOp>();
    Value ends = sub ? getSlicedSplits(sub->getOperand(0), true) : Value(),
          starts = sub ? getSlicedSplits(sub->getOperand(1), false) : Value();
    Value before = ends && starts && dfg::areSame(ends, starts) ? getLengthsOfSplits(ends) : Value();
    if (!before)
      return lengths;
    lengths = before;
  }
  return lengths;
}

/// What is compared with the number of the column: column < lengths, along the last axis of a matrix.
static Value getComparedLengths(Value mask, Value *columns = nullptr) {
  Operation *op = mask.getDefiningOp();
  if (!llvm::isa_and_nonnull<dfg::LessOp, dfg::GreaterOp>(op))
    return {};
  const bool isLess = llvm::isa<dfg::LessOp>(op);
  Value column = op->getOperand(isLess ? 0 : 1), lengths = op->getOperand(isLess ? 1 : 0);
  auto type = llvm::dyn_cast<RankedTensorType>(lengths.getType());
  if (!type || type.getRank() != 2 || type.getDimSize(1) != 1 || !hasRank(stripIntegers(lengths), 1))
    return {};
  if (columns)
    *columns = column;
  return lengths;
}

static Value stripReshapes(Value value) {
  for (Operation *op = value.getDefiningOp();
       op && (llvm::isa<dfg::ReshapeOp, dfg::SqueezeOp>(op) || op->hasTrait<dfg::Forwards>());
       op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

/// The largest of the lengths, or 0.
static bool isLongest(Value value, Value lengths) {
  value = stripIntegers(value);
  if (auto maximum = value.getDefiningOp<dfg::MaximumOp>())
    for (unsigned at : {0, 1})
      if (getInteger(maximum->getOperand(at)) == 0)
        return isLongest(maximum->getOperand(1 - at), lengths);
  auto max = value.getDefiningOp<dfg::MaxOp>();
  return max && hasRank(value, 0) && hasRank(max->getOperand(0), 1) &&
         dfg::areSame(stripIntegers(max->getOperand(0)), stripIntegers(lengths));
}

/// tf.repeat of a vector by a vector of lengths, as it is spelled out.
static std::optional<RowRepeat> matchRepeat(Operation *op) {
  if (!llvm::isa<dfg::GatherOp, dfg::GatherV2Op>(op) || !hasRank(op->getResult(0), 1) || !isInteger(op->getResult(0)) ||
      (op->getNumOperands() > 2 && getInteger(op->getOperand(2)) != 0))
    return std::nullopt;
  auto tile = stripReshapes(op->getOperand(0)).getDefiningOp<dfg::TileOp>();
  Operation *where = stripReshapes(op->getOperand(1)).getDefiningOp();
  auto opaque = llvm::dyn_cast_or_null<dfg::OpaqueOp>(where);
  if (!tile || !opaque || opaque.getOp() != "Where")
    return std::nullopt;
  Value columns, mask = stripReshapes(where->getOperand(0)), lengths = getComparedLengths(mask, &columns);
  auto range = lengths ? stripIntegers(columns).getDefiningOp<dfg::RangeOp>() : dfg::RangeOp();
  auto expand = tile->getOperand(0).getDefiningOp<dfg::ExpandDimsOp>();
  auto multiples = tile->getOperand(1).getDefiningOp<dfg::PackOp>();
  if (!range || !expand || !hasRank(expand->getOperand(0), 1) || getInteger(expand->getOperand(1)) != 1 || !multiples ||
      multiples->getNumOperands() != 2 || getInteger(multiples->getOperand(0)) != 1 ||
      getInteger(range->getOperand(0)) != 0 || getInteger(range->getOperand(2)) != 1 ||
      !isLongest(range->getOperand(1), lengths) || !isLongest(multiples->getOperand(1), lengths))
    return std::nullopt;
  return RowRepeat{expand->getOperand(0), stripIntegers(lengths)};
}

/// What only the nodes of repeats take is not looked at: it is as wide as data say.
void RowMasker::findRepeats() {
  Block &block = graph.getBody().front();
  for (Operation &op : block)
    if (needed.contains(&op))
      if (auto found = matchRepeat(&op))
        repeats[&op] = *found;
  if (repeats.empty())
    return;
  for (Operation &op : llvm::reverse(block)) {
    if (!needed.contains(&op) || repeats.contains(&op) || op.getNumResults() == 0 || op.use_empty() ||
        !(isMemoryEffectFree(&op) || choosesRows(&op)))
      continue;
    bool isOnlyRepeats = true, isTaken = false;
    for (OpOperand &use : op.getUses()) {
      Operation *user = use.getOwner();
      if (!needed.contains(user))
        continue;
      isTaken = true;
      isOnlyRepeats &= repeats.contains(user) || ofRepeats.contains(user);
    }
    // What the rows themselves are computed of is visited all the same.
    if (isTaken && isOnlyRepeats)
      ofRepeats.insert(&op);
  }
  SmallVector<Value> kept;
  for (auto &[op, repeat] : repeats)
    kept.append({repeat.data, repeat.lengths});
  while (!kept.empty()) {
    Operation *op = kept.pop_back_val().getDefiningOp();
    if (op && ofRepeats.erase(op))
      llvm::append_range(kept, op->getOperands());
  }
}

/// The shape of the matrix whose rows have as many elements among `rows` as `lengths` say. Where only a run says so,
/// `bound` is how long one may be.
std::optional<Dims> RowMasker::getGridOfLengths(const Selection *rows, Value lengths, Dim *bound) const {
  const RowCondition &asked = rows->condition;
  if (!asked.of || rows->among || rows->repeats)
    return std::nullopt;
  lengths = traceLengths(lengths);
  // Columns below a length.
  if (!asked.equals && !asked.isNegated) {
    Value columns, compared = getComparedLengths(asked.of, &columns);
    auto sizes = shapes.getShape(asked.of);
    auto numbers = compared ? shapes.getConstants(columns) : std::nullopt;
    if (numbers && sizes && sizes->size() == 2 && (*sizes)[1] == Dim(static_cast<int64_t>(numbers->size())) &&
        llvm::equal(*numbers, llvm::seq<int64_t>(0, static_cast<int64_t>(numbers->size()))) &&
        dfg::areSame(traceLengths(compared), lengths)) {
      *bound = (*sizes)[1];
      return sizes;
    }
  }
  // As many as a mask has set.
  auto sum = lengths.getDefiningOp<dfg::SumOp>();
  auto cast = sum ? sum->getOperand(0).getDefiningOp<dfg::CastOp>() : dfg::CastOp();
  auto sizes = cast ? shapes.getShape(cast->getOperand(0)) : std::nullopt;
  if (!sizes || sizes->size() != 2 || !dfg::GraphBuilder::elementOf(cast->getOperand(0)).isInteger(1))
    return std::nullopt;
  auto axes = shapes.getConstants(sum->getOperand(1));
  RowCondition counted = getCondition(cast->getOperand(0));
  if (!axes || axes->size() != 1 || (axes->front() != 1 && axes->front() != -1) || !hasRank(lengths, 1) ||
      counted.isNegated != asked.isNegated || counted.equals != asked.equals || !haveSameElements(counted.of, asked.of))
    return std::nullopt;
  *bound = Dim();
  return sizes;
}

/// Whether lengths are never more than that, as they are written.
static bool isBoundedBy(Value lengths, int64_t bound, const dfg::ShapeContext &shapes) {
  lengths = stripIntegers(lengths);
  Operation *op = lengths.getDefiningOp();
  if (!llvm::isa_and_nonnull<dfg::MinimumOp, dfg::MaximumOp>(op))
    return false;
  bool isBounded = llvm::isa<dfg::MaximumOp>(op);
  for (Value operand : op->getOperands()) {
    auto number = shapes.getConstant(operand);
    const bool fits = (number && *number <= bound) || isBoundedBy(operand, bound, shapes);
    isBounded = llvm::isa<dfg::MaximumOp>(op) ? isBounded && fits : isBounded || fits;
  }
  return isBounded;
}

LogicalResult RowMasker::repeatByLengths(Operation *op, const RowRepeat &repeat) {
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  auto sizes = shapes.getShape(repeat.data), counts = shapes.getShape(repeat.lengths);
  for (const auto &known : selections) {
    Dim bound;
    auto grid = getGridOfLengths(known.get(), repeat.lengths, &bound);
    if (!grid || !sizes || !counts || *sizes != *counts || !(sizes->front() == grid->front()))
      continue;
    if (bound.isKnown() && !isBoundedBy(traceLengths(repeat.lengths), bound.getConstant(), shapes)) {
      // Else there are more numbers than rows, which is an error in TensorFlow as well.
      Type element = g.elementOf(repeat.lengths);
      Value fits = g.lessEqual(repeat.lengths, g.scalar(element, static_cast<double>(bound.getConstant())));
      runBehind(op, check(g, g.reduce(dfg::AllOp::getOperationName(), fits, {0}, false), repeat.lengths));
    }
    RowNumbers numbers;
    if (isRange(repeat.data, grid->front()))
      numbers = {RowNumbers::Coordinate, 0, nullptr, *grid};
    return replace(g, op->getResult(0), spread(g, repeat.data, *grid), {known.get(), 0, numbers});
  }
  return op->emitError()
         << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
         << ") has no code here: it repeats each row as often as data say, and these lengths are not those by "
            "which rows were chosen before (tf.RaggedTensor.from_tensor with lengths or padding, boolean_mask "
            "by tf.sequence_mask)";
}

} // namespace distc

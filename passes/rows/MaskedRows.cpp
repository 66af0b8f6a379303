//===- MaskedRows.cpp - Rows whose number data decide, kept in place ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/rows/MaskedRows.h"
#include "dialects/dfg/CheckedOperand.h"
#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/Numbers.h"
#include "mlir/IR/Matchers.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

constexpr llvm::StringLiteral kTwoChoices =
    "rows of two choices meet: compute with all rows, and choose among what they give (tf.where, or a product with the "
    "choice as 0 and 1)";

bool choosesRows(Operation *op) {
  return llvm::isa<dfg::DynamicPartitionOp>(op) || dfg::getKind(op) == "Where" ||
         dfg::getKind(op) == "DenseToDenseSetOperation" ||
         (llvm::isa<dfg::TopKV2Op>(op) && !op->getOperand(1).getDefiningOp<dfg::ConstOp>());
}

LogicalResult RowMasker::run() {
  Block &block = graph.getBody().front();
  findRepeats();
  findSeen();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
      return failure();
    bool isTouched =
        llvm::any_of(op.getOperands(), [&](Value operand) { return isMasked(operand) || sized.contains(operand); });
    if (ofRepeats.contains(&op) || (!needed.contains(&op) && (isTouched || choosesRows(&op)))) {
      // Nothing that runs for an effect is made of it.
      for (Value result : op.getResults())
        masked.try_emplace(result);
      unneeded.push_back(&op);
      continue;
    }
    if (failed(visit(&op)))
      return failure();
  }
  eraseUnneeded();
  return checkFetches();
}

/// What no endpoint needs may have run behind it: a constant of a gradient that nothing asked for.
void RowMasker::eraseUnneeded() {
  llvm::DenseSet<Attribute> erased;
  for (Operation *op : llvm::reverse(unneeded))
    if (op->use_empty()) {
      if (!needed.contains(op))
        erased.insert(dfg::getNodeNameAttr(op));
      op->erase();
    }
  auto isErased = [&](Attribute name) { return erased.contains(name); };
  for (Operation &op : graph.getBody().front()) {
    ArrayRef<Attribute> control = dfg::getControl(&op);
    if (llvm::none_of(control, isErased))
      continue;
    SmallVector<Attribute> kept = llvm::to_vector(llvm::make_filter_range(control, std::not_fn(isErased)));
    if (kept.empty())
      op.removeDiscardableAttr(dfg::kControlAttr);
    else
      op.setDiscardableAttr(dfg::kControlAttr, ArrayAttr::get(op.getContext(), kept));
  }
}

/// What is fetched has no mask with it.
LogicalResult RowMasker::checkFetches() {
  llvm::StringSet<> fetched;
  for (const std::string &tensor : getFetchedTensors(graph))
    fetched.insert(StringRef(tensor).split(':').first);
  for (Operation &op : graph.getBody().front())
    if (fetched.contains(dfg::getNodeName(&op)))
      for (Value result : op.getResults())
        if ((isMasked(result) && getMasked(result)->rows && !getMasked(result)->rows->isBatch) ||
            sized.contains(result))
          return op.emitError()
                 << "'" << dfg::getNodeName(&op)
                 << "' has as many rows as data say, and cannot be fetched: fetch a sum or a mean over them";
  return success();
}

LogicalResult RowMasker::visit(Operation *op) {
  if (auto it = repeats.find(op); it != repeats.end())
    return repeatByLengths(op, it->second);
  if (dfg::getKind(op) == "Where")
    return selectWhere(op);
  if (dfg::getKind(op) == "DenseToDenseSetOperation")
    return subtractSizes(op);
  if (llvm::isa<dfg::UniqueOp>(op) && isLookedUp(op->getResult(0)) && isVectorOfRows(op->getOperand(0)))
    return repeatRows(op);
  if (auto partition = llvm::dyn_cast<dfg::DynamicPartitionOp>(op))
    return selectParts(partition);
  if (auto largest = llvm::dyn_cast<dfg::TopKV2Op>(op); largest && isNumberOfData(largest.getK()))
    return selectLargest(largest);
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return sized.contains(operand); }))
    if (failed(visitSizes(op)))
      return failure();
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return isMasked(operand); }))
    return visitMasked(op);
  // A sparse tensor that has all elements of a matrix.
  if (dfg::getKind(op) == "SparseReshape" && getAllPlaces(op->getOperand(0)))
    return reshapeSparse(op);
  return success();
}

/// Whether it has an element a row of the batch.
bool RowMasker::isVectorOfRows(Value value) const {
  std::optional<Dims> sizes = shapes.getShape(value);
  return sizes && sizes->size() == 1 &&
         (isMasked(value) ? !getMasked(value)->rows || getMasked(value)->rows->isOfBatch()
                          : (sizes->front().isMultipleOfBatch() && sizes->front().getScale() > 0));
}

LogicalResult RowMasker::refuse(Operation *op, const Twine &why) {
  llvm::SetVector<const Selection *> chosen = getSelections(op);
  if (!chosen.empty() && chosen.front()->isBatch)
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                           << ") has no code here for a batch with fewer rows (--pad-batch): " << why
                           << "; leave the flag out, and what of an epoch is no whole batch is mixed or dropped "
                              "(--last-batch)";
  InFlightDiagnostic error = op->emitError()
                             << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                             << ") has no code here: the number of its rows is only known when the program runs";
  if (!chosen.empty() && chosen.front()->origin)
    if (Operation *origin = chosen.front()->origin.getDefiningOp())
      error << " (by '" << dfg::getNodeName(origin) << "')";
  error << ", and " << why;
  // Of a batch that is a number, rows are followed nowhere.
  if (int64_t rows = dfg::findFixedBatch(graph))
    error << "; the graph fixes its batch to " << rows << " rows: leave the placeholders' first size open (None)";
  return error;
}

/// The new node has the name and the control inputs of the old one.
LogicalResult RowMasker::replace(Builder &g, OpResult result, Value value, MaskedValue rows) {
  Operation *op = result.getOwner();
  Value named = g.make<dfg::IdentityOp>(value);
  if (g.failed() || !named)
    return refuse(op, g.getReason().empty() ? "its operands do not fit" : g.getReason());
  if (result.getResultNumber() == 0)
    named.getDefiningOp()->setLoc(op->getLoc());
  if (auto control = op->getDiscardableAttr(dfg::kControlAttr))
    named.getDefiningOp()->setDiscardableAttr(dfg::kControlAttr, control);
  result.replaceAllUsesWith(named);
  if (rows.rows)
    masked[named] = rows;
  if (unneeded.empty() || unneeded.back() != op)
    unneeded.push_back(op);
  return success();
}

// ---- Operations on rows ------------------------------------------------------------------------------

LogicalResult RowMasker::visitMasked(Operation *op) {
  if (llvm::isa<dfg::UpdateInterface>(op))
    return update(op);
  if (dfg::getKind(op) == "SparseReshape")
    return reshapeSparse(op);
  if (dfg::getKind(op) == "SparseFillEmptyRows")
    return fillEmptyRows(op);
  if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
      opaque && opaque.getOp().starts_with("SparseSegment") && opaque.getOp().ends_with("GradV2"))
    return segmentsGrad(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<dfg::ShapeOp, dfg::ShapeNOp, dfg::SizeOp>([&](auto) { return noteShapes(op); })
      .Case<dfg::RankOp, dfg::AssertOp>([&](auto) { return success(); })
      .Case<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>([&](auto) { return gather(op); })
      .Case<dfg::GatherNdOp, dfg::ResourceGatherNdOp>([&](auto) { return gatherNd(op); })
      .Case<dfg::UnsortedSegmentSumOp, dfg::UnsortedSegmentProdOp, dfg::UnsortedSegmentMaxOp,
            dfg::UnsortedSegmentMinOp>([&](auto) { return unsortedSegment(op); })
      .Case<dfg::SegmentSumOp, dfg::SegmentMeanOp, dfg::SegmentMaxOp, dfg::SegmentMinOp, dfg::SegmentProdOp,
            dfg::SparseSegmentSumOp, dfg::SparseSegmentMeanOp, dfg::SparseSegmentSqrtNOp>(
          [&](auto) { return segments(op); })
      .Case<dfg::ScatterNdOp>([&](auto) { return scatterNd(op); })
      .Case<dfg::TensorScatterUpdateOp, dfg::TensorScatterAddOp, dfg::TensorScatterSubOp, dfg::TensorScatterMaxOp,
            dfg::TensorScatterMinOp>([&](auto) { return tensorScatter(op); })
      .Case<dfg::DynamicStitchOp>([&](auto) { return stitch(op); })
      .Case<dfg::UniqueOp, dfg::UniqueV2Op>([&](auto) { return unique(op); })
      .Case<dfg::MeanOp>([&](auto) { return mean(op); })
      .Case<dfg::MaxOp, dfg::MinOp, dfg::ProdOp, dfg::AllOp, dfg::AnyOp, dfg::EuclideanNormOp>(
          [&](auto) { return reduce(op); })
      .Case<dfg::CumsumOp, dfg::CumprodOp, dfg::SoftmaxOp, dfg::LogSoftmaxOp>([&](auto) { return scan(op); })
      .Case<dfg::ConcatV2Op>([&](auto) { return concat(op); })
      .Default([&](Operation *) { return visitByAxis(op); });
}

/// A row that is not there is often one that must not be looked at: the label -1 that a mask leaves out is no mistake.
LogicalResult RowMasker::passOverErrors(Operation *op) {
  std::optional<dfg::CheckedOperand> checked = dfg::getCheckedOperand(op);
  const MaskedValue *at = checked ? getMasked(op->getOperand(checked->index)) : nullptr;
  if (!at || !at->rows)
    return success();
  const MaskedValue rows = *at;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value there = keep(g, op->getOperand(checked->index), rows, static_cast<double>(checked->harmless));
  if (!there)
    return refuse(op, g.getReason());
  masked[there] = {rows.rows, rows.axis, {}, rows.areTerms};
  op->setOperand(checked->index, there);
  return success();
}

/// What the batch's axis would do there, the rows do.
LogicalResult RowMasker::visitByAxis(Operation *op) {
  if (failed(passOverErrors(op)))
    return failure();
  if (llvm::any_of(op->getOperands(), [&](Value operand) {
        const MaskedValue *at = getMasked(operand);
        return at && at->rows && !at->rows->isOfBatch();
      }))
    return visitOtherRows(op);
  const Selection *rows = nullptr;
  SmallVector<std::optional<BatchAxis>> axes;
  bool areTerms = false;
  for (OpOperand &operand : op->getOpOperands()) {
    axes.push_back(std::nullopt);
    const MaskedValue *at = getMasked(operand.get());
    if (!at)
      continue;
    areTerms |= at->areTerms;
    if (!at->rows || isParameterOperand(op, operand.getOperandNumber()))
      return refuse(op, "it takes them for sizes or axes");
    if (rows && !areOneChoice(op, rows, at->rows))
      return refuse(op, kTwoChoices);
    rows = at->rows;
    axes.back() = rows->getAxis(at->axis);
  }
  if ((op->hasTrait<dfg::Repeats>() || (op->hasTrait<dfg::TakesPart>() && !op->hasTrait<dfg::Gathers>())) &&
      getSelections(op).size() != 1)
    return refuse(op, kTwoChoices);
  if (areTerms && !isLinearInTerms(op))
    return refuse(op, "it is not linear in rows that are to be added up");
  // A slice's end or a size of a reshape that is the number of the rows is that of all of them here.
  Value size = llvm::isa<dfg::StridedSliceOp>(op) ? op->getOperand(2)
               : llvm::isa<dfg::ReshapeOp>(op)    ? op->getOperand(1)
                                                  : Value();
  std::optional<Dims> sizes = size && sized.contains(size) ? shapes.getElements(size) : std::nullopt;
  if (sizes) {
    shapes.setElements(size, llvm::map_to_vector<4>(*sizes, [](Dim dim) {
                         return dim.isBound() && dim.isMultipleOfBatch() ? Dim::batch(dim.getScale()) : dim;
                       }));
    if (failed(llvm::cast<dfg::ShapeInterface>(op).inferShapes(shapes)))
      return failure();
  }
  SmallVector<BatchPlacement> placements;
  for (OpResult result : op->getResults())
    placements.push_back(findBatchPlacement(op, result.getResultNumber(), axes, shapes));
  if (sizes)
    shapes.setElements(size, *sizes);
  for (auto [result, placement] : llvm::zip(op->getResults(), placements)) {
    switch (placement.kind) {
    case BatchPlacement::Unknown:
      return takeAsWhole(op, rows) ? success() : refuse(op, "it does not work row by row");
    case BatchPlacement::Without:
      break;
    case BatchPlacement::Along: {
      const bool areSame = placement.axis.segments == rows->getAxis(placement.axis.axis).segments;
      const MaskedValue *from = areSame ? nullptr : getMasked(op->getOperand(0));
      const Selection *made = areSame ? rows : from ? reshapeRows(op, *from, placement.axis) : nullptr;
      if (!made)
        return refuse(op, "it makes other rows of them");
      masked[result] = {made, placement.axis.axis, areSame ? followNumbers(op, result) : RowNumbers(), areTerms};
      break;
    }
    case BatchPlacement::Summed:
      if (rows->repeats && !areTerms)
        return refuse(op, "distinct rows are not summed up");
      OpBuilder builder(op);
      Builder g(builder, shapes, op);
      for (OpOperand &operand : op->getOpOperands())
        if (const MaskedValue *at = getMasked(operand.get())) {
          Value there = keep(g, operand.get(), *at, 0);
          if (!there)
            return refuse(op, g.getReason());
          operand.set(there);
        }
      return success();
    }
  }
  return success();
}

/// Of rows that are no multiple of the batch's, along the first axis: what keeps that axis and makes each row of that
/// row alone.
LogicalResult RowMasker::visitOtherRows(Operation *op) {
  const Selection *rows = nullptr;
  bool areTerms = false;
  SmallVector<int64_t> at, others;
  for (OpOperand &operand : op->getOpOperands()) {
    const MaskedValue *masked = getMasked(operand.get());
    if (!masked) {
      others.push_back(operand.getOperandNumber());
      continue;
    }
    if (!masked->rows || masked->axis != 0 || (rows && masked->rows != rows))
      return refuse(op, kTwoChoices);
    rows = masked->rows;
    areTerms |= masked->areTerms;
    at.push_back(operand.getOperandNumber());
  }
  if (areTerms && !isLinearInTerms(op))
    return refuse(op, "it is not linear in rows that are to be added up");
  auto refuseOther = [&] { return refuse(op, "it does not work row by row"); };
  if (llvm::isa<dfg::SumOp>(op) && at.size() == 1 && at.front() == 0) {
    auto axes = shapes.getConstants(op->getOperand(1));
    std::optional<Dims> from = shapes.getShape(op->getOperand(0));
    if (!axes || !from)
      return refuse(op, "its axes must be known");
    if (llvm::any_of(*axes, [&](int64_t axis) { return axis == 0 || axis == -static_cast<int64_t>(from->size()); })) {
      OpBuilder builder(op);
      Builder g(builder, shapes, op);
      Value there = rows->repeats && !areTerms ? Value() : keep(g, op->getOperand(0), {rows, 0, {}}, 0);
      if (!there)
        return refuse(op, rows->repeats ? StringRef("distinct rows are not summed up") : g.getReason());
      op->setOperand(0, there);
      return success();
    }
  }
  std::optional<Dims> sizes = op->getNumResults() == 1 ? shapes.getShape(op->getResult(0)) : std::nullopt;
  if (!sizes || sizes->empty() || sizes->front() != rows->rows)
    return refuseOther();
  auto rankOf = [&](int64_t operand) {
    std::optional<Dims> of = shapes.getShape(op->getOperand(operand));
    return of ? std::optional(of->size()) : std::nullopt;
  };
  if (llvm::isa<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>(op)) {
    auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
    if (at.size() != 1 || at.front() != 1 || (batchDims && batchDims.getInt() != 0) ||
        (op->getNumOperands() > 2 && shapes.getConstant(op->getOperand(2)) != 0))
      return refuseOther();
  } else if (llvm::isa<dfg::SumOp>(op)) {
    // Along other axes.
    if (at.size() != 1 || at.front() != 0)
      return refuseOther();
  } else if (llvm::isa<dfg::BroadcastToOp>(op)) {
    std::optional<Dims> from = shapes.getShape(op->getOperand(0));
    if (at.size() != 1 || at.front() != 0 || !from || from->size() != sizes->size() || from->front() != rows->rows)
      return refuseOther();
  } else if (op->hasTrait<dfg::Reshapes>()) {
    // Row-major: with as many rows, each keeps its elements.
    std::optional<Dims> from = shapes.getShape(op->getOperand(0));
    if (at.size() != 1 || at.front() != 0 || !from || from->empty() || from->front() != rows->rows)
      return refuseOther();
  } else if (llvm::isa<dfg::ScalarInterface>(op)) {
    for (int64_t operand : at)
      if (rankOf(operand) != sizes->size())
        return refuseOther();
    for (int64_t operand : others) {
      std::optional<Dims> of = shapes.getShape(op->getOperand(operand));
      if (!of || of->size() > sizes->size() || (of->size() == sizes->size() && of->front() != Dim(1)))
        return refuseOther();
    }
  } else {
    return refuseOther();
  }
  sizes->front() = rows->rows;
  shapes.setShape(op->getResult(0), *sizes);
  masked[op->getResult(0)] = {rows, 0, followNumbers(op, op->getResult(0)), areTerms};
  return success();
}

/// Where the rows meet as many others, all must be there: anything else is an error in TensorFlow, too.
bool RowMasker::takeAsWhole(Operation *op, const Selection *rows) {
  if (!op->hasTrait<dfg::Joins>() && !llvm::isa<dfg::ScalarInterface, dfg::SoftmaxCrossEntropyWithLogitsOp,
                                                dfg::SparseSoftmaxCrossEntropyWithLogitsOp, dfg::MatMulOp>(op))
    return false;
  SmallVector<std::optional<BatchAxis>> axes;
  bool meets = false;
  for (Value operand : op->getOperands()) {
    axes.push_back(std::nullopt);
    if (const MaskedValue *at = getMasked(operand)) {
      axes.back() = rows->getAxis(at->axis);
      continue;
    }
    std::optional<Dims> sizes = shapes.getShape(operand);
    for (auto [axis, size] : llvm::enumerate(sizes.value_or(Dims())))
      if (size == rows->rows && !axes.back()) {
        axes.back() = rows->getAxis(static_cast<int64_t>(axis));
        meets = true;
      }
  }
  for (OpResult result : op->getResults())
    if (!meets || findBatchPlacement(op, result.getResultNumber(), axes, shapes, 0).kind == BatchPlacement::Unknown)
      return false;
  if (rows->repeats ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return isMasked(operand) && getMasked(operand)->areTerms; }))
    return false;
  if (rows->isAll)
    return true;
  // Others that a smaller batch leaves out are none that it knows.
  if (rows->getWhole()->isBatch)
    return false;
  StringAttr &checked = complete[rows];
  if (!checked) {
    OpBuilder builder(op);
    Builder g(builder, shapes, op);
    checked = check(g, g.reduce(dfg::AllOp::getOperationName(), rows->mask, {0}, false), rows->mask);
  }
  runBehind(op, checked);
  return checked != nullptr;
}

/// Whether the result has the numbers of the operand.
RowNumbers RowMasker::followNumbers(Operation *op, OpResult result) {
  if (op->hasTrait<dfg::Adds>() || llvm::isa<dfg::MulOp>(op))
    return combineNumbers(op, result);
  RowNumbers numbers = getMasked(op->getOperand(0)) ? getMasked(op->getOperand(0))->numbers : RowNumbers();
  std::optional<Dims> from = shapes.getShape(op->getOperand(0)), to = shapes.getShape(result);
  if (numbers.kind == RowNumbers::Unknown || !from || !to)
    return {};
  const bool isVector = numbers.isVector();
  // No number is less than 0, but a combination may be where a factor is.
  const bool isNatural = numbers.kind != RowNumbers::Combination ||
                         llvm::all_of(numbers.factors, [](int64_t factor) { return factor >= 0; });
  if (llvm::isa<dfg::MaximumOp>(op) && isNatural &&
      (op->getOperand(1).getDefiningOp<dfg::ZerosLikeOp>() || shapes.getConstant(op->getOperand(1)) == 0))
    return numbers;
  if (op->hasTrait<dfg::Forwards>() ||
      (llvm::isa<dfg::CastOp>(op) && dfg::GraphBuilder::elementOf(result).isInteger() &&
       !dfg::GraphBuilder::elementOf(result).isInteger(1)))
    return numbers;
  if (op->hasTrait<dfg::Reshapes>()) {
    if (numbers.kind == RowNumbers::FirstCoordinate || (numbers.kind == RowNumbers::Coordinates && !isVector))
      return *to == *from ? numbers : RowNumbers();
    if (to->size() == 1)
      return numbers.kind == RowNumbers::Coordinates ? RowNumbers{RowNumbers::Number, 0, numbers.among} : numbers;
    bool isColumn = to->size() == 2 && (*to)[1] == Dim(1) && isVector && numbers.kind == RowNumbers::Number;
    return isColumn       ? RowNumbers{RowNumbers::Coordinates, 0, numbers.among, {*to}}
           : *to == *from ? numbers
                          : RowNumbers();
  }
  if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op);
      slice && (numbers.kind == RowNumbers::Coordinates || numbers.kind == RowNumbers::FirstCoordinate) &&
      to->size() == 1) {
    auto begin = shapes.getConstants(slice.getBegin());
    if (!begin || begin->size() != 2 || (*begin)[1] < 0 ||
        (numbers.kind == RowNumbers::FirstCoordinate && (*begin)[1] != 0))
      return {};
    return isVector ? RowNumbers{RowNumbers::Number, 0, numbers.among}
                    : RowNumbers{RowNumbers::Coordinate, (*begin)[1], nullptr, numbers.grid};
  }
  return {};
}

/// Coordinates times the sizes behind them, added up, are the number of the row.
RowNumbers RowMasker::combineNumbers(Operation *op, OpResult result) {
  RowNumbers combined;
  if (std::optional<Dims> sizes = shapes.getShape(result); !sizes || sizes->size() != 1)
    return {};
  std::optional<int64_t> factor;
  for (Value operand : op->getOperands()) {
    const MaskedValue *at = getMasked(operand);
    if (!at) {
      std::optional<Dims> sizes = shapes.getShape(operand);
      factor = shapes.getConstant(operand);
      if (!sizes || product(*sizes) != Dim(1) || !factor || !llvm::isa<dfg::MulOp>(op))
        return {};
      continue;
    }
    RowNumbers numbers = at->numbers;
    if (numbers.kind == RowNumbers::Coordinate) {
      numbers.factors.assign(numbers.grid.size(), 0);
      numbers.factors[numbers.column] = 1;
    } else if (numbers.kind != RowNumbers::Combination) {
      return {};
    }
    if (combined.grid.empty()) {
      combined = {RowNumbers::Combination, 0, nullptr, numbers.grid, numbers.factors};
      continue;
    }
    if (llvm::isa<dfg::MulOp>(op) || combined.grid != numbers.grid)
      return {};
    for (auto [sum, other] : llvm::zip(combined.factors, numbers.factors))
      sum += other;
  }
  int64_t behind = 1;
  bool isNumber = true;
  for (size_t axis = combined.grid.size(); axis-- > 0;) {
    if (factor)
      combined.factors[axis] *= *factor;
    isNumber &= combined.factors[axis] == behind;
    if (axis > 0 && !combined.grid[axis].isConstant())
      return {};
    behind *= axis > 0 ? combined.grid[axis].getConstant() : 1;
  }
  return isNumber ? RowNumbers{RowNumbers::Number} : combined;
}

/// Whether it is zeros, the sum of as many terms as there are.
static bool isZero(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op)) {
      auto dense = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
      return dense && dense.isSplat() && (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()));
    }
    if (llvm::isa<dfg::ZerosLikeOp>(op))
      return true;
    const bool isFill = llvm::isa<dfg::FillOp>(op);
    if (!isFill && !op->hasTrait<dfg::Forwards>() && !op->hasTrait<dfg::Reshapes>() && !op->hasTrait<dfg::Repeats>())
      return false;
    value = op->getOperand(isFill ? 1 : 0);
  }
  return false;
}

/// Whether what op makes of the sum of terms is the sum of what it makes of each.
bool RowMasker::isLinearInTerms(Operation *op) const {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  unsigned values = 0, terms = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    // What chooses is no term, and the same for rows that are one.
    const bool isTerm = isMasked(operand.get()) && getMasked(operand.get())->areTerms;
    const bool chooses = llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op) && operand.getOperandNumber() == 0;
    if (chooses && isTerm)
      return false;
    if (chooses || isParameterOperand(op, operand.getOperandNumber()))
      continue;
    ++values;
    terms += isTerm || (node && node.getLinearity() == dfg::Linearity::Joint && isZero(operand.get()));
  }
  auto isTerm = [&](Value value) { return isMasked(value) && getMasked(value)->areTerms; };
  switch (node ? node.getLinearity() : dfg::Linearity::None) {
  case dfg::Linearity::None:
    return false;
  case dfg::Linearity::Joint:
    return terms == values;
  case dfg::Linearity::Each:
    return terms == 1;
  case dfg::Linearity::First:
    return terms == 1 && isTerm(op->getOperands().front());
  case dfg::Linearity::Last:
    return terms == 1 && isTerm(op->getOperands().back());
  }
  return false;
}

/// The sum of those that are there, divided by their number.
LogicalResult RowMasker::mean(Operation *op) {
  const MaskedValue *rows = getMasked(op->getOperand(0));
  std::optional<Dims> sizes = shapes.getShape(op->getOperand(0));
  auto axes = shapes.getConstants(op->getOperand(1));
  if (!rows || !rows->rows || !sizes || !axes)
    return refuse(op, "its axes must be known");
  Dim others = 1;
  bool overRows = false;
  SmallVector<int64_t> along;
  for (int64_t axis : *axes) {
    along.push_back(axis < 0 ? axis + static_cast<int64_t>(sizes->size()) : axis);
    if (along.back() == rows->axis)
      overRows = true;
    else
      others = others * (*sizes)[along.back()];
  }
  if (!overRows)
    return visitByAxis(op);
  if (rows->rows->repeats)
    return refuse(op, "distinct rows are not averaged");
  if (!others.isConstant() || !llvm::isa<FloatType>(Builder::elementOf(op->getResult(0))))
    return refuse(op, "their mean is over other axes of the batch too, or of integers");
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  auto keeps = op->getAttrOfType<BoolAttr>("keep_dims");
  Value sum = g.sum(keep(g, op->getOperand(0), *rows, 0), along, keeps && keeps.getValue());
  Value count = g.mul(getCount(g, rows->rows, builder.getF32Type()),
                      g.scalar(builder.getF32Type(), static_cast<double>(others.getConstant())));
  return replace(g, op->getResult(0), g.div(sum, g.cast(count, g.elementOf(sum))));
}

/// A maximum over the rows and the like: what is not there does not change it.
LogicalResult RowMasker::reduce(Operation *op) {
  const MaskedValue *rows = getMasked(op->getOperand(0));
  std::optional<Dims> sizes = shapes.getShape(op->getOperand(0));
  auto axes = shapes.getConstants(op->getOperand(1));
  if (!rows || !rows->rows || !sizes || !axes)
    return refuse(op, "its axes must be known");
  if (llvm::none_of(*axes, [&](int64_t axis) {
        return (axis < 0 ? axis + static_cast<int64_t>(sizes->size()) : axis) == rows->axis;
      }))
    return visitByAxis(op);
  if (rows->areTerms)
    return refuse(op, "it is not linear in rows that are to be added up");
  if (rows->rows->repeats && llvm::isa<dfg::ProdOp, dfg::EuclideanNormOp>(op))
    return refuse(op, "distinct rows are not multiplied");
  Type element = Builder::elementOf(op->getOperand(0));
  const bool isFloat = llvm::isa<FloatType>(element), isLarge = llvm::isa<dfg::MinOp>(op);
  double otherwise = llvm::isa<dfg::ProdOp, dfg::AllOp>(op) ? 1 : 0;
  if (llvm::isa<dfg::MaxOp, dfg::MinOp>(op)) {
    // Of a batch at least one row is there, in some replica.
    const unsigned bits = element.getIntOrFloatBitWidth();
    if (!isFloat && (!rows->rows->isBatch || bits < 8))
      return refuse(op, "of integers there is none of no rows");
    const double least =
        isFloat ? -std::numeric_limits<double>::infinity() : -std::ldexp(1.0, static_cast<int>(bits) - 1);
    // What a double has of the largest int64 is one too many.
    const double most = isFloat     ? std::numeric_limits<double>::infinity()
                        : bits > 32 ? std::ldexp(1.0, 62)
                                    : -least - 1;
    otherwise = isLarge ? most : least;
  }
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value there = keep(g, op->getOperand(0), *rows, otherwise);
  if (!there)
    return refuse(op, g.getReason());
  op->setOperand(0, there);
  return success();
}

/// What each row has of the others is as if those that are not there were none.
LogicalResult RowMasker::scan(Operation *op) {
  const MaskedValue *at = getMasked(op->getOperand(0));
  std::optional<Dims> sizes = shapes.getShape(op->getOperand(0));
  const bool isScan = llvm::isa<dfg::CumsumOp, dfg::CumprodOp>(op);
  std::optional<int64_t> axis = isScan ? shapes.getConstant(op->getOperand(1)) : std::optional<int64_t>(-1);
  if (!at || !at->rows || !sizes || !axis)
    return refuse(op, "its axes must be known");
  const MaskedValue rows = *at;
  if ((*axis < 0 ? *axis + static_cast<int64_t>(sizes->size()) : *axis) != rows.axis)
    return visitByAxis(op);
  if (rows.rows->repeats || (rows.areTerms && !llvm::isa<dfg::CumsumOp>(op)))
    return refuse(op, "distinct rows are not summed up");
  const double otherwise = llvm::isa<dfg::CumsumOp>(op)    ? 0
                           : llvm::isa<dfg::CumprodOp>(op) ? 1
                                                           : -std::numeric_limits<double>::infinity();
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value there = keep(g, op->getOperand(0), rows, otherwise);
  if (!there)
    return refuse(op, g.getReason());
  op->setOperand(0, there);
  masked[op->getResult(0)] = {rows.rows, rows.axis, {}, rows.areTerms};
  return success();
}

/// Behind each other: the masks too.
LogicalResult RowMasker::concat(Operation *op) {
  auto axis = shapes.getConstant(op->getOperands().back());
  SmallVector<Value> values(op->getOperands().drop_back()), masks;
  std::optional<Dims> sizes = shapes.getShape(values.front());
  if (!axis || !sizes)
    return refuse(op, "its axes must be known");
  int64_t along = *axis < 0 ? *axis + static_cast<int64_t>(sizes->size()) : *axis;
  bool isAlong = llvm::any_of(values, [&](Value value) { return isMasked(value) && getMasked(value)->axis == along; });
  if (!isAlong)
    return visitByAxis(op);
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Dim all = 0;
  std::string key;
  const Selection *first = nullptr;
  bool repeats = false, areTerms = false;
  SmallVector<const Selection *> parts;
  Dims sizesOfParts;
  for (Value value : values) {
    const MaskedValue *rows = getMasked(value);
    repeats |= rows && rows->rows->repeats;
    areTerms |= rows && rows->areTerms;
    FailureOr<Dims> own = g.getShape(value);
    if (failed(own) || (rows && rows->axis != along))
      return refuse(op, "its parts have other rows");
    Dim size = (*own)[along];
    if (!size.isMultipleOfBatch())
      return refuse(op, "its parts are not all of the batch");
    all = all + size;
    parts.push_back(rows ? rows->rows : nullptr);
    sizesOfParts.push_back(size);
    first = rows ? rows->rows : first;
    masks.push_back(rows ? rows->rows->mask : Value());
    if (!rows)
      masks.back() = g.make<dfg::FillOp>(
          {g.pack(g.sizeOf(value, along, builder.getI32Type()), 0), g.scalar(builder.getI1Type(), 1)}, {},
          builder.getI1Type());
  }
  // Tensors that are joined alike, a gradient's indices and its values, have the same rows.
  const Selection *joined = nullptr;
  auto areAlike = [](auto pair) {
    auto [one, other] = pair;
    return one == other || (one && other && one->mask == other->mask);
  };
  for (const auto &known : joins)
    if (known.parts.size() == parts.size() && llvm::all_of(llvm::zip(known.parts, parts), areAlike) &&
        known.sizes == sizesOfParts && known.joined->repeats == repeats)
      joined = known.joined;
  if (!joined) {
    joined = add({g.concat(masks, 0), all, nullptr, first->origin, {}, {}, repeats});
    joins.push_back({parts, sizesOfParts, joined});
  }
  if (g.failed())
    return refuse(op, g.getReason());
  masked[op->getResult(0)] = {joined, along, {}, areTerms};
  return success();
}

/// Rows of a variable: those that are not there name none.
LogicalResult RowMasker::update(Operation *op) {
  auto node = llvm::cast<dfg::UpdateInterface>(op);
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  if (node.getIndicesOperand() < 0)
    return refuse(op, "it updates all elements of a variable");
  const MaskedValue *indices = getMasked(op->getOperand(node.getIndicesOperand()));
  const bool adds = op->hasTrait<dfg::AddsSlices>();
  if (!adds && indices &&
      (indices->rows->repeats || (isMasked(op->getOperand(node.getGradientOperand())) &&
                                  getMasked(op->getOperand(node.getGradientOperand()))->areTerms)))
    return refuse(op, "rows of equal indices must be added up before");
  for (OpOperand &operand : op->getOpOperands()) {
    const MaskedValue *rows = getMasked(operand.get());
    if (!rows)
      continue;
    int number = static_cast<int>(operand.getOperandNumber());
    if (!indices || rows->rows != indices->rows || rows->axis != 0 ||
        (number != node.getIndicesOperand() && number != node.getGradientOperand()))
      return refuse(op, "it is no gradient of rows");
    Value there =
        number == node.getIndicesOperand() ? keepIndices(g, operand.get(), *rows) : keep(g, operand.get(), *rows, 0);
    if (!there)
      return refuse(op, g.getReason());
    operand.set(there);
  }
  return success();
}

} // namespace distc

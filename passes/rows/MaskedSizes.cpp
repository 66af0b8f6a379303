//===- MaskedSizes.cpp - How many rows there are, as sizes and as numbers -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

llvm::SetVector<const Selection *> RowMasker::getSelections(Operation *op) const {
  llvm::SetVector<const Selection *> found;
  for (Value operand : op->getOperands()) {
    if (auto it = sized.find(operand); it != sized.end())
      found.insert_range(it->second);
    if (const MaskedValue *rows = getMasked(operand); rows && rows->rows)
      found.insert(rows->rows->getWhole());
  }
  return found;
}

/// Operands that say how large a result is, whose rows then are all rows.
static bool takesSize(Operation *op, unsigned operand) {
  if (llvm::isa<dfg::StridedSliceGradOp>(op))
    return operand == 0;
  return llvm::isa<dfg::BroadcastGradientArgsOp>(op) ||
         (llvm::isa<dfg::SliceOp, dfg::StridedSliceOp>(op) && operand == 2) ||
         (llvm::isa<dfg::PadOp, dfg::PadV2Op>(op) && operand == 1) ||
         (showsParametersInSizes(op) && isParameterOperand(op, operand));
}

/// The sizes have the number of all rows; what is no size takes the number of those that are there.
LogicalResult RowMasker::visitSizes(Operation *op) {
  if (op->hasTrait<dfg::DrawsNumbers>() && (!isOfBatch(op) || llvm::isa<dfg::RandomPermutationOp>(op)))
    return refuse(op, "random numbers are drawn for all of them");
  if (llvm::isa<dfg::RangeOp>(op)) {
    llvm::SetVector<const Selection *> of = getSelections(op);
    std::optional<Dims> sizes = shapes.getShape(op->getResult(0));
    if (of.size() == 1 && shapes.getConstant(op->getOperand(0)) == 0 && shapes.getConstant(op->getOperand(2)) == 1 &&
        sizes && sizes->front() == of.front()->rows) {
      OpBuilder builder(op);
      Builder g(builder, shapes, op);
      return replace(g, op->getResult(0), numberRows(g, of.front(), g.elementOf(op->getResult(0))),
                     {of.front(), 0, {RowNumbers::Number, 0, of.front()}});
    }
    // The rows of a batch have their places for numbers.
    if (isOfBatch(op) && !sized.contains(op->getOperand(0)) && !sized.contains(op->getOperand(2)) && sizes &&
        sizes->front() == of.front()->rows) {
      masked[op->getResult(0)] = {of.front(), 0, {}};
      return success();
    }
  }
  bool isSize = false;
  llvm::SetVector<const Selection *> of = getSelections(op);
  // Floats and conditions are no sizes, although their elements may be followed.
  auto isFollowedInteger = [&](Value result) {
    Type element = Builder::elementOf(result);
    return element.isInteger() && !element.isInteger(1) && shapes.getElements(result);
  };
  const bool isFollowed = op->getNumResults() > 0 && llvm::all_of(op->getResults(), isFollowedInteger);
  bool isChanged = false;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!sized.contains(operand.get()))
      continue;
    if (takesSize(op, operand.getOperandNumber())) {
      isSize = true;
    } else if (!isFollowed) {
      Value number = makeExact(g, operand.get());
      if (!number)
        return refuse(op, g.getReason().empty() ? "needs it as a number" : g.getReason());
      operand.set(number);
      isChanged = true;
    }
  }
  if (isChanged) {
    for (Value result : op->getResults())
      shapes.forget(result);
    if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
      return failure();
  }
  if (isFollowed) {
    for (Value result : op->getResults()) {
      auto elements = shapes.getElements(result);
      if (elements && llvm::any_of(*elements, [](Dim dim) { return !dim.isKnown() || dim.isBound(); }))
        sized[result] = of;
    }
    return success();
  }
  bool anyMasked = llvm::any_of(op->getOperands(), [&](Value operand) { return isMasked(operand); });
  return isSize && !anyMasked ? fillRows(op) : success();
}

/// Whether what it knows of sizes is of the batch's rows alone.
bool RowMasker::isOfBatch(Operation *op) const {
  llvm::SetVector<const Selection *> of = getSelections(op);
  return of.size() == 1 && of.front()->isBatch;
}

/// Rows that are alike, or of numbers that are drawn, as many as there are.
LogicalResult RowMasker::fillRows(Operation *op) {
  llvm::SetVector<const Selection *> of = getSelections(op);
  Value result = op->getResult(0);
  std::optional<Dims> sizes = shapes.getShape(result);
  // Rows that all must be there are as many as the others that they have met.
  if (llvm::all_of(of, [&](const Selection *rows) { return complete.contains(rows) || rows->isAll; })) {
    for (const Selection *rows : of)
      runBehind(op, complete.lookup(rows));
    return success();
  }
  if (of.size() != 1 || !sizes ||
      !(op->hasTrait<dfg::Repeats>() || llvm::isa<dfg::FillOp>(op) || op->hasTrait<dfg::DrawsNumbers>()))
    return refuse(op, "it makes other rows of them");
  std::optional<int64_t> axis;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (size.isKnown() && !size.isBound())
      continue;
    if (axis)
      return refuse(op, "it makes another number of rows");
    axis = i;
  }
  if (!axis)
    return success();
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  const Selection *rows = divide(g, of.front(), (*sizes)[*axis]);
  if (!rows)
    return refuse(op, "it makes another number of rows");
  (*sizes)[*axis] = rows->rows;
  shapes.setShape(result, *sizes);
  masked[result] = {rows, *axis, {}};
  return success();
}

/// The same shape arithmetic with the true number of rows.
Value RowMasker::makeExact(Builder &g, Value value) {
  auto it = sized.find(value);
  if (it == sized.end())
    return value;
  if (Value known = exact.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Type element = g.elementOf(value);
  Value made;
  if (llvm::isa<dfg::ShapeOp, dfg::ShapeNOp, dfg::SizeOp>(op)) {
    Value of = op->getOperand(llvm::isa<dfg::ShapeNOp>(op) ? llvm::cast<OpResult>(value).getResultNumber() : 0);
    const MaskedValue *rows = getMasked(of);
    FailureOr<Dims> sizes = g.getShape(of);
    if (failed(sizes) || !rows)
      return {};
    SmallVector<Value> parts;
    for (int64_t axis = 0; axis < static_cast<int64_t>(sizes->size()); ++axis)
      parts.push_back(axis == rows->axis ? g.cast(getCount(g, rows->rows, g.builder.getI32Type()), element)
                                         : g.sizeOf(of, axis, element));
    if (llvm::isa<dfg::SizeOp>(op)) {
      made = parts.front();
      for (Value part : ArrayRef(parts).drop_front())
        made = g.mul(made, part);
    } else {
      made = g.pack(parts, 0);
    }
    return exact[value] = made;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(makeExact(g, operand));
  if (llvm::is_contained(operands, Value()))
    return {};
  Operation *copy = g.builder.clone(*op);
  copy->setOperands(operands);
  copy->setLoc(NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(op) + "/of_rows")));
  for (Value result : copy->getResults())
    shapes.forget(result);
  if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(copy); node && failed(node.inferShapes(shapes)))
    return {};
  for (auto [old, copied] : llvm::zip(op->getResults(), copy->getResults()))
    exact[old] = copied;
  return exact[value];
}

LogicalResult RowMasker::noteShapes(Operation *op) {
  for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults())) {
    const MaskedValue *rows = getMasked(operand);
    std::optional<Dims> sizes = shapes.getShape(operand);
    if (!rows)
      continue;
    if (!sizes)
      return refuse(op, "its axes must be known");
    (*sizes)[rows->axis] = rows->rows->rows.asBound();
    shapes.setElements(result, llvm::isa<dfg::SizeOp>(op) ? Dims{product(*sizes)} : *sizes);
    sized[result].insert(rows->rows->getWhole());
  }
  return success();
}

} // namespace distc

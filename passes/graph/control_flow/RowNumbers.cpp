//===- RowNumbers.cpp - Numbers that may be the batch's, where the graph fixes it -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Where placeholders have [32, 784], `tf.shape(x)[0]` is a number like any other, and
// N replicas with 32 rows each do what the graph with N * 32 does: a condition on it
// may go the other way there. The first size of any shape may be the batch's where it
// is a multiple of the rows; what follows from it has bounds that hold for any N. What
// is decided by such a number is decided where they say the same, and noted where not.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "passes/graph/control_flow/StraightLine.h"

using namespace mlir;

namespace distc {

bool StraightLine::hasRowsFirst(Value value) const {
  if (rowVectors.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  if (fixedRows == 0 || !op || !type || type.getRank() != 1 || !type.getElementType().isInteger() ||
      !(llvm::isa<dfg::ConstOp>(op) || op->hasTrait<dfg::AsksShapes>()))
    return false;
  std::optional<dfg::Dims> elements = shapes.getElements(value);
  if (!elements || elements->empty() || !elements->front().isConstant())
    return false;
  const int64_t first = elements->front().getConstant();
  return first > 0 && first % fixedRows == 0;
}

/// Whether op's result, of elements of a vector, may have the first of them.
bool StraightLine::takesFirst(Operation *op) const {
  auto from = shapes.getConstants(op->getOperand(1));
  auto sizes = shapes.getShape(op->getOperand(0));
  if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op); slice && slice.getBeginMask())
    return true;
  return !from || !sizes || sizes->size() != 1 || !(*sizes)[0].isConstant() ||
         llvm::any_of(*from, [&](int64_t at) { return at == 0 || at == -(*sizes)[0].getConstant(); });
}

dfg::NumberRange StraightLine::getRangeOfRows(Value value) const {
  if (auto it = rowNumbers.find(value); it != rowNumbers.end())
    return it->second;
  // Its elements are numbers of several kinds.
  if (hasRowsFirst(value))
    return {};
  if (std::optional<int64_t> known = shapes.getConstant(value))
    return dfg::NumberRange::of(static_cast<double>(*known));
  dfg::NumberRange range;
  const IntegerRange integers = ranges.lookup(value);
  if (integers.least)
    range.least = static_cast<double>(*integers.least);
  if (integers.most)
    range.most = static_cast<double>(*integers.most);
  return range;
}

void StraightLine::noteRows(Operation *op) {
  if (fixedRows == 0 || op->getNumOperands() == 0 || op->getNumResults() == 0 ||
      llvm::isa<dfg::ShapeOp, dfg::ShapeNOp, dfg::RankOp>(op))
    return;
  auto note = [&](Value value, dfg::NumberRange range) { rowNumbers[value] = range; };
  // It and what is larger.
  auto noteFrom = [&](Value value) {
    std::optional<int64_t> known = shapes.getConstant(value);
    note(value, known && *known >= 0 ? dfg::NumberRange{static_cast<double>(*known)} : dfg::NumberRange());
  };
  if (llvm::isa<dfg::SizeOp>(op)) {
    auto sizes = shapes.getShape(op->getOperand(0));
    if (sizes && !sizes->empty() && (*sizes)[0].isConstant() && (*sizes)[0].getConstant() > 0 &&
        (*sizes)[0].getConstant() % fixedRows == 0)
      noteFrom(op->getResult(0));
    return;
  }
  const bool isVector = hasRowsFirst(op->getOperand(0)) && !mayBeRows(op->getOperand(0));
  // What is taken of a shape behind its first size is no number of rows.
  if (isVector && llvm::isa<dfg::UnpackOp>(op))
    return noteFrom(op->getResult(0));
  if (isVector && op->hasTrait<dfg::TakesPart>() && op->getNumResults() == 1) {
    if (!takesFirst(op))
      return;
    auto sizes = shapes.getShape(op->getResult(0));
    if (sizes && (sizes->empty() || (sizes->size() == 1 && (*sizes)[0] == dfg::Dim(1))))
      noteFrom(op->getResult(0));
    else
      rowVectors.insert(op->getResult(0));
    return;
  }
  auto areCounts = [&](Value value) {
    auto elements = shapes.getConstants(value);
    return elements && llvm::all_of(*elements, [](int64_t element) { return element >= 0; });
  };
  if (isVector && op->hasTrait<dfg::Reduces>()) {
    if (llvm::isa<dfg::ProdOp, dfg::SumOp, dfg::MaxOp, dfg::MinOp>(op) && areCounts(op->getOperand(0)))
      noteFrom(op->getResult(0));
    else
      note(op->getResult(0), {});
    return;
  }
  const bool isOfRows = llvm::any_of(op->getOperands(), [&](Value operand) { return mayBeRows(operand); });
  if (!isOfRows && llvm::isa<dfg::ScalarInterface>(op) &&
      llvm::any_of(op->getOperands(), [&](Value operand) { return hasRowsFirst(operand); })) {
    rowVectors.insert(op->getResult(0));
    return;
  }
  if (!isOfRows && llvm::none_of(op->getOperands(), [&](Value operand) { return rowVectors.contains(operand); }))
    return;
  for (Value result : op->getResults())
    if (llvm::isa<TensorType>(result.getType()))
      note(result, dfg::inferNumberRange(op, [&](Value value) { return getRangeOfRows(value); }));
}

bool StraightLine::dependsOnRows(Value value) const {
  return isOfStep && mayBeRows(value) && !getRangeOfRows(value).isOne();
}

void StraightLine::noteDecision(StringRef name, Value value, ArrayRef<std::pair<Value, int64_t>> reads) {
  if (!dependsOnRows(value))
    return;
  SmallVector<Attribute> known;
  for (auto [tensor, axis] : reads) {
    auto result = llvm::dyn_cast<OpResult>(tensor);
    StringRef node = result ? dfg::getNodeName(result.getOwner()) : "";
    if (node.empty())
      continue;
    known.push_back(builder.getStringAttr(node + ":" + llvm::Twine(result.getResultNumber())));
    known.push_back(builder.getI64IntegerAttr(axis));
  }
  // One that was noted before without has none.
  auto [it, isNew] = decisions.try_emplace(name.empty() ? "?" : name, builder.getArrayAttr(known));
  if (!isNew && known.empty())
    it->second = builder.getArrayAttr({});
}

} // namespace distc

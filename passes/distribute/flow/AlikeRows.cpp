//===- AlikeRows.cpp - Values whose rows are alike --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/AlikeRows.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"

using namespace mlir;

namespace distc {

namespace {

bool makesSplat(Operation *op) {
  if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  return op->hasTrait<dfg::Fills>();
}

/// Whether the rows of a constant along `axis` are alike, all or in each of `runs`.
bool areRowsAlike(DenseElementsAttr elements, int64_t axis, ArrayRef<int64_t> runs) {
  // What somebody typed; a table is not.
  constexpr int64_t kMaxElements = 1 << 16;
  if (elements.getNumElements() > kMaxElements)
    return false;
  ArrayRef<int64_t> sizes = elements.getType().getShape();
  int64_t inner = 1, rows = sizes[axis];
  for (int64_t size : sizes.drop_front(axis + 1))
    inner *= size;
  // The first row of the run of each.
  SmallVector<int64_t> firsts;
  for (int64_t run : runs)
    firsts.append(run, static_cast<int64_t>(firsts.size()));
  if (runs.empty())
    firsts.assign(rows, 0);
  if (static_cast<int64_t>(firsts.size()) != rows)
    return false;
  auto values = elements.getValues<Attribute>();
  for (int64_t i = 0, count = elements.getNumElements(); i < count; ++i) {
    const int64_t row = i / inner % rows;
    if (values[i] != values[i + (firsts[row] - row) * inner])
      return false;
  }
  return true;
}

std::optional<int64_t> normalize(std::optional<int64_t> axis, int64_t rank) {
  return axis && *axis < 0 ? *axis + rank : axis;
}

} // namespace

bool AlikeRows::findSplat(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (auto sizes = shapes.getShape(value);
      sizes && llvm::all_of(*sizes, [](dfg::Dim dim) { return dim == dfg::Dim(1); }))
    return true;
  if (!op || depth == 0)
    return false;
  if (makesSplat(op))
    return true;
  auto isSplatToo = [&](Value operand) { return isSplat(operand, depth - 1); };
  if (llvm::isa<dfg::ScalarInterface>(op))
    return llvm::all_of(op->getOperands(), isSplatToo);
  // Gathers give zeros for what is not there.
  if (op->hasTrait<dfg::TakesPart>() && !op->hasTrait<dfg::Gathers>())
    return isSplatToo(dfg::getWhole(op));
  const bool moves = op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Repeats>() || op->hasTrait<dfg::Permutes>();
  return moves && isSplatToo(op->getOperand(0));
}

bool AlikeRows::findAlike(Value value, int64_t axis, int depth) {
  auto sizes = shapes.getShape(value);
  if (!sizes)
    return false;
  const int64_t rank = sizes->size();
  if (axis < 0 || (axis < rank && (*sizes)[axis] == dfg::Dim(1)))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || axis >= rank || depth == 0)
    return false;
  if (isSplat(value, depth))
    return true;
  auto isOperandAlike = [&](unsigned operand, int64_t at) { return isAlike(op->getOperand(operand), at, depth - 1); };
  auto rankOf = [&](unsigned operand) {
    auto of = shapes.getShape(op->getOperand(operand));
    return of ? std::optional<int64_t>(of->size()) : std::nullopt;
  };
  if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op)) {
    auto elements = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    return elements && elements.getType().getRank() == rank && areRowsAlike(elements, axis, runs);
  }
  if (llvm::isa<dfg::ScalarInterface>(op) || llvm::isa<dfg::BroadcastToOp>(op)) {
    unsigned count = llvm::isa<dfg::BroadcastToOp>(op) ? 1 : op->getNumOperands();
    for (unsigned operand = 0; operand < count; ++operand)
      if (auto own = rankOf(operand); !own || !isOperandAlike(operand, axis - (rank - *own)))
        return false;
    return true;
  }
  if (llvm::isa<dfg::TileOp>(op))
    return runs.empty() && isOperandAlike(0, axis);
  if (llvm::isa<dfg::ExpandDimsOp>(op)) {
    auto added = normalize(shapes.getConstant(op->getOperand(1)), rank);
    return added && *added != axis && isOperandAlike(0, axis - (*added < axis));
  }
  if (llvm::isa<dfg::TransposeOp>(op)) {
    auto permutation = shapes.getConstants(op->getOperand(1));
    if (!permutation || static_cast<int64_t>(permutation->size()) != rank)
      return false;
    auto from = normalize((*permutation)[axis], rank);
    return isOperandAlike(0, *from);
  }
  if (llvm::isa<dfg::ReshapeOp>(op)) {
    // The axes up to this one are as they were.
    auto from = shapes.getShape(op->getOperand(0));
    return from && static_cast<int64_t>(from->size()) > axis &&
           llvm::equal(ArrayRef(*from).take_front(axis + 1), ArrayRef(*sizes).take_front(axis + 1)) &&
           isOperandAlike(0, axis);
  }
  if (auto product = llvm::dyn_cast<dfg::MatMulOp>(op))
    return axis == 0 ? isOperandAlike(0, product.getTransposeA() ? 1 : 0)
                     : isOperandAlike(1, product.getTransposeB() ? 0 : 1);
  if (llvm::isa<dfg::SplitOp>(op))
    return runs.empty() && isOperandAlike(1, axis);
  if (llvm::isa<dfg::ConcatV2Op>(op) && !runs.empty() &&
      normalize(shapes.getConstant(op->getOperands().back()), rank) == axis)
    return isJoinedOfRuns(op, axis, depth);
  if (llvm::isa<dfg::ConcatV2Op>(op)) {
    for (unsigned operand = 0; operand + 1 < op->getNumOperands(); ++operand)
      if (!isOperandAlike(operand, axis))
        return false;
    return normalize(shapes.getConstant(op->getOperands().back()), rank).value_or(axis) != axis;
  }
  return false;
}

std::optional<SmallVector<int64_t>> cutRuns(ArrayRef<int64_t> runs, int64_t begin, int64_t size) {
  SmallVector<int64_t> taken;
  int64_t at = 0, total = 0;
  for (int64_t run : runs) {
    if (at >= begin && at + run <= begin + size) {
      taken.push_back(run);
      total += run;
    }
    at += run;
  }
  return total == size ? std::optional(taken) : std::nullopt;
}

/// Of a concatenation along `axis`: whether each operand has runs that begin and end with it.
bool AlikeRows::isJoinedOfRuns(Operation *op, int64_t axis, int depth) const {
  int64_t begin = 0;
  for (Value operand : op->getOperands().drop_back()) {
    auto sizes = shapes.getShape(operand);
    if (!sizes || static_cast<int64_t>(sizes->size()) <= axis || !(*sizes)[axis].isConstant())
      return false;
    const int64_t size = (*sizes)[axis].getConstant();
    auto own = cutRuns(runs, begin, size);
    if (!own || !AlikeRows(shapes, *own).isAlike(operand, axis, depth - 1))
      return false;
    begin += size;
  }
  return true;
}

} // namespace distc

//===- RowForm.cpp - Operations that work on the same rows ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/RowForm.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/lower/gpu/IterationSpace.h"

using namespace mlir;

namespace distc::schedule {

Value getReshaped(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, memref::ExpandShapeOp, memref::CollapseShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool RowForm::isPerRow(Value value) const {
  return columns != 1 && cast<ShapedType>(value.getType()).getNumElements() == rows;
}

std::optional<unsigned> RowForm::getRowLoops(linalg::LinalgOp op) const {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t product = 1;
  unsigned loops = 0;
  while (loops < sizes.size() && product < rows)
    product *= sizes[loops++];
  if (product != rows)
    return std::nullopt;
  return loops;
}

std::optional<RowForm::Kind> RowForm::getKind(linalg::LinalgOp op) const {
  std::optional<unsigned> rowLoops = getRowLoops(op);
  if (!rowLoops || columns == 1)
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t inRow = computeProduct(ArrayRef(sizes).drop_front(*rowLoops));
  auto all = [](ArrayRef<utils::IteratorType> loops, utils::IteratorType type) {
    return llvm::all_of(loops, [&](utils::IteratorType loop) { return loop == type; });
  };
  if (!all(ArrayRef(iterators).take_front(*rowLoops), utils::IteratorType::parallel))
    return std::nullopt;
  ArrayRef<utils::IteratorType> inner = ArrayRef(iterators).drop_front(*rowLoops);
  Kind kind;
  if (inRow == 1 && op.getNumReductionLoops() == 0)
    kind = Kind::PerRow;
  else if (inRow == columns && op.getNumReductionLoops() == 0)
    kind = Kind::Map;
  else if (inRow == columns && all(inner, utils::IteratorType::reduction))
    kind = Kind::Reduction;
  else
    return std::nullopt;
  for (OpOperand &result : op.getDpsInitsMutable())
    if (!isOwnRow(result) || isPerRow(result.get()) != (kind != Kind::Map))
      return std::nullopt;
  return kind;
}

bool RowForm::isOwnRow(OpOperand &operand) const {
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  auto type = cast<ShapedType>(operand.get().getType());
  std::optional<unsigned> rowLoops = getRowLoops(op);
  FailureOr<SmallVector<int64_t>> address =
      getLinearAddress(op.getMatchingIndexingMap(&operand), getStrides(type.getShape()));
  if (!rowLoops || failed(address) || address->back() != 0)
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<int64_t> toRow = getStrides(ArrayRef(sizes).take_front(*rowLoops));
  SmallVector<int64_t> inRow = getStrides(ArrayRef(sizes).drop_front(*rowLoops));
  bool perRow = isPerRow(operand.get());
  if (!perRow && type.getNumElements() != rows * columns)
    return false;
  for (auto [loop, size] : llvm::enumerate(sizes)) {
    int64_t step = loop < *rowLoops ? toRow[loop] * (perRow ? 1 : columns) : perRow ? 0 : inRow[loop - *rowLoops];
    if (size != 1 && (*address)[loop] != step)
      return false;
  }
  return true;
}

bool RowForm::isOwnRow(linalg::LinalgOp op, Value source, ValueRange indices) const {
  auto type = cast<ShapedType>(source.getType());
  std::optional<unsigned> rowLoops = getRowLoops(op);
  bool perRow = isPerRow(source);
  // Behind the row's axes, one along the row or none that leads anywhere.
  if (!rowLoops || type.getRank() < *rowLoops ||
      (!perRow && (type.getRank() != *rowLoops + 1 || type.getShape().back() != columns)))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (unsigned axis = 0; axis < *rowLoops; ++axis) {
    auto position = indices[axis].getDefiningOp<linalg::IndexOp>();
    if (type.getDimSize(axis) != sizes[axis] || (sizes[axis] != 1 && (!position || position.getDim() != axis)))
      return false;
  }
  return true;
}

} // namespace distc::schedule

//===- RowForm.cpp - Operations that work on the same rows ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/RowForm.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/lower/gpu/IterationSpace.h"
#include "passes/lower/gpu/KernelWriter.h"

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

bool reducesRows(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [size, iterator] : llvm::reverse(llvm::zip(op.getStaticLoopRanges(), iterators)))
    if (size != 1)
      return iterator == utils::IteratorType::reduction;
  return op.getNumReductionLoops() > 0;
}

std::optional<RowForm> RowForm::of(linalg::LinalgOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (sizes.empty())
    return std::nullopt;
  unsigned rowLoops = sizes.size() - std::max<unsigned>(op.getNumReductionLoops(), 1);
  RowForm form{computeProduct(ArrayRef(sizes).take_front(rowLoops)),
               computeProduct(ArrayRef(sizes).drop_front(rowLoops))};
  if (form.rows < 1 || form.columns < 2)
    return std::nullopt;
  return form;
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
  // Loops of one iteration may be of either type.
  auto all = [&](unsigned first, unsigned last, utils::IteratorType type) {
    return llvm::all_of(llvm::seq(first, last), [&](unsigned i) { return sizes[i] == 1 || iterators[i] == type; });
  };
  if (!all(0, *rowLoops, utils::IteratorType::parallel))
    return std::nullopt;
  Kind kind;
  if (inRow == 1 && op.getNumReductionLoops() == 0)
    kind = Kind::PerRow;
  else if (inRow == columns && op.getNumReductionLoops() == 0)
    kind = Kind::Map;
  else if (inRow == columns && all(*rowLoops, sizes.size(), utils::IteratorType::reduction))
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

bool RowForm::hasRows(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() == rows * columns;
}

std::optional<int64_t> RowForm::getColumnParts(linalg::LinalgOp op) const {
  std::optional<unsigned> rowLoops = getRowLoops(op);
  if (!rowLoops || columns == 1 || op.getNumReductionLoops() == 0)
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  // Parts, then rows of a part, then columns.
  int64_t parts = 1, inPart = 1, inRow = 1;
  for (auto [loop, size] : llvm::enumerate(sizes)) {
    const bool isReduced = iterators[loop] == utils::IteratorType::reduction;
    if (size == 1)
      continue;
    if (loop >= *rowLoops ? isReduced : !isReduced && inPart != 1)
      return std::nullopt;
    (loop >= *rowLoops ? inRow : isReduced ? inPart : parts) *= size;
  }
  if (inRow != columns || inPart == 1)
    return std::nullopt;
  for (Value result : op.getDpsInits())
    if (cast<ShapedType>(result.getType()).getNumElements() != parts * columns)
      return std::nullopt;
  return parts;
}

int64_t RowForm::countColumnSums(ArrayRef<linalg::GenericOp> ops) const {
  int64_t sums = 0;
  for (linalg::GenericOp op : ops)
    sums += getColumnParts(op) ? op->getNumResults() : 0;
  return sums;
}

RowThreads::RowThreads(const RowForm &form) {
  constexpr int64_t kHeldElements = 8, kMaxThreads = 1024;
  vector = form.columns % 4 == 0 ? 4 : 1;
  group = std::max<int64_t>(kWarp, llvm::PowerOf2Ceil(llvm::divideCeil(form.columns, kHeldElements)));
  if (int64_t vectors = llvm::PowerOf2Ceil(form.columns / vector); vectors < kWarp)
    group = vectors;
  // A vocabulary's row takes all threads of a block, which then hold more of it each.
  group = std::min(group, kMaxThreads);
  held = llvm::divideCeil(form.columns, group * vector) * vector;
}

bool RowThreads::holds(int64_t values, int64_t blockThreads) const {
  // A multiprocessor's, which the threads of a block share; a thread's for elements, where others are left for
  // addresses and what is computed of them. More would be spilled.
  constexpr int64_t kBlockRegisters = 65536, kMaxRegisters = 160, kOtherRegisters = 24;
  return held * values <=
         std::min(kMaxRegisters, kBlockRegisters / std::max(blockThreads, kMinThreads) - kOtherRegisters);
}

bool RowForm::isOwnRow(linalg::LinalgOp op, Value source, ValueRange indices) const {
  auto type = cast<ShapedType>(source.getType());
  std::optional<unsigned> rowLoops = getRowLoops(op);
  // A row's elements lie along the last axis.
  bool perRow = isPerRow(source);
  if (!rowLoops || (!perRow && (type.getRank() == 0 || type.getShape().back() != columns)))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isLong = [](ArrayRef<int64_t> extents) {
    return llvm::make_filter_range(llvm::seq<unsigned>(0, extents.size()), [=](unsigned i) { return extents[i] != 1; });
  };
  SmallVector<unsigned> axes = llvm::to_vector(isLong(type.getShape().drop_back(perRow ? 0 : 1)));
  SmallVector<unsigned> loops = llvm::to_vector(isLong(ArrayRef(sizes).take_front(*rowLoops)));
  if (axes.size() != loops.size())
    return false;
  return llvm::all_of(llvm::zip(axes, loops), [&](auto pair) {
    auto [axis, loop] = pair;
    auto position = indices[axis].template getDefiningOp<linalg::IndexOp>();
    return position && position.getDim() == loop && type.getDimSize(axis) == sizes[loop];
  });
}

} // namespace distc::schedule

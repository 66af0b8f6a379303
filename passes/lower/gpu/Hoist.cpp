//===- Hoist.cpp - What a kernel reads moves in front of it ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/Hoist.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace distc {

bool Hoist::isPossible(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(place))
    return true;
  if (op->getNumRegions() > 0 && !isa<linalg::FillOp>(op))
    return false;
  if (auto read = dyn_cast<drt::ReadOp>(op); read && isUnchanged(read))
    return true;
  if (!op->hasTrait<OpTrait::ConstantLike>() &&
      !isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, linalg::FillOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isPossible(operand); });
}

void Hoist::move(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    move(operand);
  op->moveBefore(place);
}

bool Hoist::isUnchanged(drt::ReadOp read) {
  for (Operation *op = place; op != read; op = op->getNextNode())
    if (isa<drt::DRTDialect>(op->getDialect()) && !isa<drt::ReadOp>(op) && !isMemoryEffectFree(op))
      return false;
  return true;
}

llvm::SetVector<Value> getUsed(linalg::GenericOp op) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op.getRegion(), used);
  return used;
}

} // namespace distc

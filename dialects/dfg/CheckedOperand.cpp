//===- CheckedOperand.cpp - Operands that can end the program -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/CheckedOperand.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg {

std::optional<CheckedOperand> getCheckedOperand(Operation *op) {
  if (op->hasTrait<ChecksDivisor>()) {
    auto type = llvm::dyn_cast<TensorType>(op->getOperand(1).getType());
    return type && type.getElementType().isInteger() ? std::optional(CheckedOperand{1, 1}) : std::nullopt;
  }
  if (op->hasTrait<Gathers>() || llvm::isa<SparseSoftmaxCrossEntropyWithLogitsOp>(op))
    return CheckedOperand{1, 0};
  if (llvm::isa<CheckNumericsOp>(op))
    return CheckedOperand{0, 0};
  if (auto update = llvm::dyn_cast<UpdateInterface>(op); update && update.getIndicesOperand() >= 0)
    return CheckedOperand{static_cast<unsigned>(update.getIndicesOperand()), 0};
  return std::nullopt;
}

} // namespace distc::dfg

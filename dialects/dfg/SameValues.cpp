//===- SameValues.cpp - Values that are computed alike ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/SameValues.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg {

bool areSame(Value x, Value y, int depth) {
  Operation *left = x.getDefiningOp(), *right = y.getDefiningOp();
  if (x == y)
    return true;
  if (depth == 0 || !left || !right || !isMemoryEffectFree(left) || left->hasTrait<DrawsNumbers>() ||
      llvm::cast<OpResult>(x).getResultNumber() != llvm::cast<OpResult>(y).getResultNumber() ||
      left->getName() != right->getName() || left->getNumOperands() != right->getNumOperands() ||
      left->getPropertiesAsAttribute() != right->getPropertiesAsAttribute())
    return false;
  return llvm::all_of(llvm::zip(left->getOperands(), right->getOperands()),
                      [&](auto operands) { return areSame(std::get<0>(operands), std::get<1>(operands), depth - 1); });
}

} // namespace distc::dfg

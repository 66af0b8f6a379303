//===- ReductionSums.h - What may be added without rounding in between -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_REDUCTIONSUMS_H
#define DISTC_PASSES_LOWER_KERNELS_REDUCTIONSUMS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseSet.h"

namespace distc {

/// The operations that join a reduction's elements, in the bodies that were given. What an element is must not depend
/// on the kernel: it is computed again wherever it is read, and who compares it with the largest of all must find one
/// that is equal. So a product is added without rounding in between to a sum of a reduction alone, which one kernel
/// computes for all.
class ReductionSums {
public:
  void add(mlir::linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    values.insert_range(op.getRegionOutputArgs());
    op->walk([&](mlir::Operation *inner) {
      if (inner != op && has(inner))
        values.insert_range(inner->getResults());
    });
  }

  /// Whether it joins something to what there is so far.
  bool has(mlir::Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](mlir::Value operand) { return values.contains(operand); });
  }
  /// Whether it is a product that is joined so, and nothing else.
  bool hasAddend(mlir::Operation *op) const {
    return llvm::isa<mlir::arith::MulFOp>(op) && op->hasOneUse() && has(*op->user_begin());
  }

private:
  llvm::DenseSet<mlir::Value> values;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_REDUCTIONSUMS_H

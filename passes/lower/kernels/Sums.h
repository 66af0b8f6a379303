//===- Sums.h - Sums of tensors, element by element -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_SUMS_H
#define DISTC_PASSES_LOWER_KERNELS_SUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace distc {

/// Whether it is the sum of all inputs, element by element, and nothing else; 0 may be among the terms, as what a
/// loop's sum began with.
bool isSum(mlir::linalg::GenericOp generic);

/// What makes `value` where that is such a sum; null elsewhere.
mlir::linalg::GenericOp getSum(mlir::Value value);

/// The sums of `block` that are no part of another one, their only reader.
llvm::SmallVector<mlir::linalg::GenericOp> getWholeSums(mlir::Block &block);

/// The terms of `root`, and of the sums that are parts of it, in their order, and those sums, users first.
struct SumTerms {
  explicit SumTerms(mlir::linalg::GenericOp root);

  llvm::SmallVector<mlir::Value> terms;
  llvm::SmallVector<mlir::linalg::GenericOp> sums;
};

/// x + y, which have one shape.
mlir::Value createSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value y);

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_SUMS_H

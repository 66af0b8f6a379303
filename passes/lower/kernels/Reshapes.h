//===- Reshapes.h - Reshapes on the way to what is rounded -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_RESHAPES_H
#define DISTC_PASSES_LOWER_KERNELS_RESHAPES_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace distc {

inline bool isReshape(mlir::Operation *op) {
  return llvm::isa_and_nonnull<mlir::tensor::CollapseShapeOp, mlir::tensor::ExpandShapeOp>(op);
}

/// `source`, whose elements may be of another type than those of what `reshape` takes, in the shape that `reshape`
/// gives; it stands before `reshape`.
inline mlir::Value reshapeLike(mlir::Operation *reshape, mlir::Value source) {
  mlir::OpBuilder builder(reshape);
  mlir::Operation *own = builder.clone(*reshape);
  own->setOperand(0, source);
  auto type = llvm::cast<mlir::RankedTensorType>(reshape->getResult(0).getType());
  own->getResult(0).setType(type.clone(llvm::cast<mlir::RankedTensorType>(source.getType()).getElementType()));
  return own->getResult(0);
}

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_RESHAPES_H

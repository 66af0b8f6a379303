//===- TensorType.h - The tensor type of a value ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_TENSORTYPE_H
#define DISTC_PASSES_LOWER_TENSORTYPE_H

#include "mlir/IR/BuiltinTypes.h"

namespace distc {

/// A tensor's type.
inline mlir::RankedTensorType typeOf(mlir::Value tensor) {
  return llvm::cast<mlir::RankedTensorType>(tensor.getType());
}

} // namespace distc

#endif // DISTC_PASSES_LOWER_TENSORTYPE_H

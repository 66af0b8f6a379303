//===- MemoryWrites.h - When memory changes that a value is -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_MEMORYWRITES_H
#define DISTC_PASSES_LOWER_KERNELS_MEMORYWRITES_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace distc {

/// When memory changes that a value is, and does not hold: a variable, a gradient that is reduced in place. What reads
/// it must not move behind that. Of a block as it was found; operations may go, but not move.
class MemoryWrites {
public:
  explicit MemoryWrites(mlir::Block &block);

  /// Whether what `op` reads is the same when `later` runs.
  bool isUnchanged(mlir::Operation *op, mlir::Operation *later) const;
  /// The same of one value.
  bool isUnchanged(mlir::Value value, mlir::Operation *op, mlir::Operation *later) const;

private:
  void addVariables(mlir::ArrayAttr variables, unsigned position);

  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<unsigned>> ofVariables;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned>> ofValues;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_MEMORYWRITES_H

//===- RowUpdate.h - An update of some rows as one kernel ---------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_ROWUPDATE_H
#define DISTC_PASSES_LOWER_GPU_ROWUPDATE_H

#include "mlir/IR/SymbolTable.h"
#include "passes/lower/gpu/UpdateGroup.h"

namespace distc {

/// A drt.sparse_update whose rows are sorted or distinct.
struct RowUpdate {
  /// Fails with a diagnostic where they are not, or where something is missing.
  static llvm::FailureOr<RowUpdate> get(drt::SparseUpdateOp op, const mlir::SymbolTable &symbols);

  drt::SparseUpdateOp op;
  UpdateRule rule;
  llvm::SmallVector<int64_t> sizes; // of the variables' axes that an index names
  int64_t row = 0;                  // elements of a row
  /// Of the rule, behind the gradient. What is no variable has an address of its own, also in the arena.
  llvm::SmallVector<UpdateOperand> operands;

  /// Tensors with addresses of their own, the kernel's arguments behind the two bases: indices, values, then others.
  llvm::SmallVector<mlir::Value> getArguments() const;
  /// Tensors that the kernel finds from the bases.
  llvm::SmallVector<mlir::Value> getReads() const;
};

/// Writes the update's kernel, `gpu.func @name`. A thread an element of a row does the row's updates one after the
/// other.
void writeRowUpdateKernel(const RowUpdate &update, mlir::ModuleOp module, llvm::StringRef name, MemorySizes sizes);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_ROWUPDATE_H

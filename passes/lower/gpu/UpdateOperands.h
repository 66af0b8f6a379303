//===- UpdateOperands.h - Where the operands of an entry's updates lie -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_UPDATEOPERANDS_H
#define DISTC_PASSES_LOWER_GPU_UPDATEOPERANDS_H

#include "mlir/IR/SymbolTable.h"
#include "passes/lower/gpu/UpdateGroup.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// Operations are passed in their order: what a scalar's value is depends on the updates before it.
class UpdateOperands {
public:
  /// Of an entry of a program over `replicas`.
  UpdateOperands(drt::EntryOp entry, const mlir::SymbolTable &symbols, int64_t replicas);

  /// Operands of the update's rule. Fails with a diagnostic where a place is missing.
  llvm::LogicalResult get(drt::UpdateOp op, llvm::SmallVectorImpl<UpdateOperand> &operands);
  /// Updates of one group have equal keys, and rules.
  std::string getKey(drt::UpdateOp op, llvm::ArrayRef<UpdateOperand> operands) const;
  /// What the updates from a bucket multiply its gradients by.
  double getScale(int32_t bucket) const { return scales.lookup_or(bucket, 1.0); }
  std::string getNode(drt::UpdateOp op) const;
  /// Behind each operation.
  void pass(mlir::Operation *op);
  /// Buckets whose mean the updates take are summed.
  void takeMeans();

private:
  /// An argument with an element for each of the variable's.
  llvm::FailureOr<UpdateOperand> getStream(drt::UpdateOp op, mlir::Value tensor);
  llvm::FailureOr<UpdateOperand> findStream(drt::UpdateOp op, mlir::Value tensor);
  llvm::FailureOr<UpdateOperand> getVariable(drt::UpdateOp op, llvm::StringRef name);
  llvm::FailureOr<UpdateOperand> getGradient(drt::UpdateOp op, int32_t bucket, uint64_t member);
  /// Equal for tensors with the same contents.
  std::string identify(mlir::Value tensor) const;

  drt::EntryOp entry;
  const mlir::SymbolTable &symbols;
  llvm::DenseMap<int32_t, drt::AllReduceStartOp> buckets;
  llvm::DenseMap<int32_t, double> scales;
  llvm::StringMap<unsigned> versions;                    // updates of a variable so far
  llvm::DenseMap<mlir::Operation *, std::string> copied; // what a copy of a variable holds
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_UPDATEOPERANDS_H

//===- ControlFlow.h - Branches and loops of a thread's code --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_CONTROLFLOW_H
#define DISTC_PASSES_LOWER_GPU_CONTROLFLOW_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace distc::schedule {

/// What `write` writes at the builder's place happens where the condition holds.
inline void writeIf(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, llvm::function_ref<void()> write) {
  auto branch = mlir::scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  write();
}

/// What `write` writes happens for each `at` from `begin` to before `end`, `step` apart; it hands on values.
inline llvm::SmallVector<mlir::Value>
writeLoop(mlir::ImplicitLocOpBuilder &b, mlir::Value begin, mlir::Value end, mlir::Value step, mlir::ValueRange carried,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value at, mlir::ValueRange carried)> write) {
  auto loop = mlir::scf::ForOp::create(b, begin, end, step, carried);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  llvm::SmallVector<mlir::Value> next = write(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    mlir::scf::YieldOp::create(b, next);
  return llvm::to_vector(mlir::ValueRange(loop.getResults()));
}

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_CONTROLFLOW_H

//===- Addresses.h - Where a tensor of an entry lies ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_ADDRESSES_H
#define DISTC_PASSES_LOWER_PLAN_ADDRESSES_H

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace distc {

/// True if the results of `op` are written to the arena, at its `at`.
bool isPlaced(mlir::Operation *op);

/// The value whose memory `value` is: reshapes (tensor.expand_shape, tensor.collapse_shape, tensor.cast) move nothing.
mlir::Value getStorage(mlir::Value value);

/// Of a dense row-major tensor of static shape; an i1 takes one byte.
int64_t getElementBytes(mlir::Type element);
int64_t getTensorBytes(mlir::RankedTensorType type);
int64_t countElements(mlir::Value tensor);

/// The module's entries, in order.
llvm::SmallVector<drt::EntryOp> getEntries(mlir::ModuleOp module);

/// Where the members of a bucket lie, in bytes from its place, and behind the last member the bucket's size.
llvm::SmallVector<int64_t> getMemberOffsets(drt::AllReduceStartOp bucket);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_ADDRESSES_H

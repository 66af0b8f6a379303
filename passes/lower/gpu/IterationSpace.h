//===- IterationSpace.h - How a linalg operation walks its buffers -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The loops of a linalg operation on buffers of static shape, as few as walk all
// operands alike: two loops are one where every operand steps through them as
// through one. Schedules choose by these loops and compute addresses from them.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_ITERATIONSPACE_H
#define DISTC_PASSES_LOWER_GPU_ITERATIONSPACE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace distc::schedule {

/// One or more loops of the operation, taken as one.
struct Loop {
  int64_t size;
  /// The loops of the operation that it stands for, the outermost first. Loops of one iteration belong to none.
  llvm::SmallVector<unsigned> dims;
  /// By operand (inputs, then outputs): elements from one iteration to the next.
  llvm::SmallVector<int64_t> strides;
};

class IterationSpace {
public:
  /// Fails where an operand's address is no linear function of the loops.
  static llvm::FailureOr<IterationSpace> get(mlir::linalg::LinalgOp op);

  /// Both sorted: parallel loops as the first result lies in memory, reductions as the operation has them; the
  /// innermost last.
  llvm::SmallVector<Loop> parallel, reduction;
  /// By operand: the element at the first iteration.
  llvm::SmallVector<int64_t> offsets;

  int64_t getParallelSize() const { return getSize(parallel); }
  int64_t getReductionSize() const { return getSize(reduction); }
  unsigned getNumOperands() const { return offsets.size(); }

  static int64_t getSize(llvm::ArrayRef<Loop> loops);
};

/// Numbers of elements in front of each axis of a buffer of `shape`, one line behind the other.
llvm::SmallVector<int64_t> getStrides(llvm::ArrayRef<int64_t> shape);

/// The element that `map` names in a buffer with these strides, as coefficients of its dimensions and a constant behind
/// them; fails where it is no linear function.
llvm::FailureOr<llvm::SmallVector<int64_t>> getLinearAddress(mlir::AffineMap map, llvm::ArrayRef<int64_t> strides);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_ITERATIONSPACE_H

//===- Reduction.h - Partial results and how they are joined --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_REDUCTION_H
#define DISTC_PASSES_LOWER_GPU_REDUCTION_H

#include "passes/lower/gpu/KernelWriter.h"

namespace distc::schedule {

/// How the reductions of one operation, one a result, join two partial results. The order in which they are joined is
/// fixed by the schedule, so results are the same in each run.
class Reduction {
public:
  using Values = KernelWriter::Values;

  /// None where some result is not the reduction's own, one element for all its iterations, or the body does not end in
  /// an associative operation of the result so far and a new element.
  static std::optional<Reduction> match(mlir::linalg::LinalgOp op);

  Values getIdentities(KernelWriter &w) const;
  Values join(KernelWriter &w, mlir::ValueRange x, mlir::ValueRange y) const;
  /// Of one result.
  mlir::Value join(KernelWriter &w, unsigned result, mlir::Value x, mlir::Value y) const;
  /// All of `lanes` neighbouring threads of a warp get what they have together; `lanes` is a power of two.
  Values joinLanes(KernelWriter &w, Values partial, int64_t lanes) const;
  /// All threads of the block get what they have together; every one of them must come here. `threads` is a power of
  /// two of whole warps.
  Values joinBlock(KernelWriter &w, Values partial, int64_t threads) const {
    return joinGroups(w, partial, threads, threads);
  }
  /// The same for each group of neighbours; `size` is a power of two of whole warps, and `threads` a multiple of it.
  Values joinGroups(KernelWriter &w, Values partial, int64_t size, int64_t threads) const;

private:
  llvm::SmallVector<mlir::Operation *> joins; // by result
};

/// The partial results with the elements at `count` neighbours joined to them.
KernelWriter::Values accumulate(KernelWriter &w, mlir::linalg::LinalgOp op, const IterationSpace &space,
                                const Point &point, const Lanes &lanes, mlir::ValueRange partial);

/// The inputs' elements at neighbours, by lane.
llvm::SmallVector<KernelWriter::Values> loadInputs(KernelWriter &w, mlir::linalg::LinalgOp op,
                                                   const IterationSpace &space, const Point &point, const Lanes &lanes);

/// Joins the elements to the partial results of neighbours along a parallel loop, those of the first lane before those
/// of the next.
KernelWriter::Values accumulateLanes(KernelWriter &w, mlir::linalg::LinalgOp op, const IterationSpace &space,
                                     const Point &point, const Lanes &lanes,
                                     llvm::MutableArrayRef<KernelWriter::Values> inputs, mlir::ValueRange partial);

/// Stores what the kernel's initial values and the joined partial ones make.
void storeReduced(KernelWriter &w, const Reduction &reduction, mlir::linalg::LinalgOp op, const IterationSpace &space,
                  const Point &point, mlir::ValueRange partial);

/// The input with the most elements, of tensors or buffers; null where none has any.
mlir::OpOperand *getLargestInput(mlir::linalg::LinalgOp op);

/// Where a reduction's operation reads along a row, neighbours of the innermost reduction loop; else along a column,
/// neighbours of the innermost parallel one: by its largest input.
bool readsRows(mlir::linalg::LinalgOp op, const IterationSpace &space);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_REDUCTION_H

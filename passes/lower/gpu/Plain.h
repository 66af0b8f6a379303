//===- Plain.h - An operation, iteration by iteration ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_PLAIN_H
#define DISTC_PASSES_LOWER_GPU_PLAIN_H

#include "passes/lower/gpu/KernelWriter.h"

namespace distc::schedule {

/// The iterations of the operation's parallel loops.
int64_t getParallelSize(mlir::linalg::LinalgOp op);

/// One of them, by its number, with all iterations of the reduced loops. Addresses may be any affine function of the
/// loops.
void writeIteration(KernelWriter &w, mlir::linalg::LinalgOp op, mlir::Value iteration);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_PLAIN_H

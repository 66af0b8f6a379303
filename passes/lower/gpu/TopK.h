//===- TopK.h - The largest elements of rows, by kernels ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_TOPK_H
#define DISTC_PASSES_LOWER_GPU_TOPK_H

#include "passes/lower/gpu/SortedRows.h"

namespace distc {

/// Replaces the routine "top_k": of each row the k largest elements in their order, equal ones in that of their
/// positions, and NaNs last.
void replaceTopK(drt::RoutineOp op, DeviceLaunches &launches);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_TOPK_H

//===- Kernels.h - Which functions are kernels ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_KERNELS_H
#define DISTC_PASSES_LOWER_KERNELS_KERNELS_H

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace distc {

/// A kernel of whole tensors, or of an update's range of elements; what else is a function is an entry's.
inline bool isKernel(mlir::func::FuncOp function) {
  return function->hasAttr(drt::kKernelAttr) || function->hasAttr(drt::kRangeKernelAttr);
}

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_KERNELS_H

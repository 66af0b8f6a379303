//===- Passes.h - From the distributed graph to the runtime's plan and objects -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PASSES_H
#define DISTC_PASSES_LOWER_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace distc {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

/// Kernels (`drt.kernel`, `drt.range_kernel`) from linalg on buffers to LLVM functions.
void buildLowerKernelsPipeline(mlir::OpPassManager &pm);

/// Kernels of a grid's threads (`gpu.func` in `gpu.module @kernels`, with `drt.grid` and `drt.block`) to NVVM, one bare pointer a buffer.
void buildLowerGpuKernelsPipeline(mlir::OpPassManager &pm);

#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"

} // namespace distc

#endif // DISTC_PASSES_LOWER_PASSES_H

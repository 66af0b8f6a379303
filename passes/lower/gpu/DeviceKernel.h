//===- DeviceKernel.h - Kernels for devices that passes write themselves -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_DEVICEKERNEL_H
#define DISTC_PASSES_LOWER_GPU_DEVICEKERNEL_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace distc {

/// Threads of a block, where a kernel has no reason for more or fewer.
constexpr int64_t kThreads = 256;
/// That a thread loads or stores at once, at most.
constexpr int64_t kVectorBytes = 16;

/// `gpu.module @kernels`, which is made where there is none.
mlir::gpu::GPUModuleOp getKernelModule(mlir::ModuleOp module);

/// Makes `gpu.func @name` with one argument a buffer, launched with `blocks` of `threads` along x, and leaves `builder`
/// at the start of its body; `gpu.return` is there. The buffers are `llvm.noalias`: what the kernel writes it reads by
/// the same argument only, and no thread reads what another one wrote.
mlir::gpu::GPUFuncOp createKernel(mlir::ImplicitLocOpBuilder &builder, mlir::ModuleOp module, llvm::StringRef name,
                                  mlir::TypeRange arguments, int64_t blocks, int64_t threads);

/// The thread's number along x, as an index: block * threads + thread. `threads`: those of a block.
mlir::Value getThread(mlir::ImplicitLocOpBuilder &builder, int64_t threads);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_DEVICEKERNEL_H

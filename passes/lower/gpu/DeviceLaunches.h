//===- DeviceLaunches.h - Launches of kernels that a pass writes -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_DEVICELAUNCHES_H
#define DISTC_PASSES_LOWER_GPU_DEVICELAUNCHES_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/gpu/ThreadWriter.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// Makes launches, and their kernels; equal ones are one kernel.
class DeviceLaunches {
public:
  /// Buffers of the operands and the results, each as one line.
  using WriteFn = llvm::function_ref<void(ThreadWriter &writer, mlir::ValueRange operands, mlir::ValueRange results)>;

  /// Kernels are named `prefix`_NAME_NUMBER.
  DeviceLaunches(mlir::ModuleOp module, llvm::StringRef prefix) : module(module), prefix(prefix) {}

  /// A launch of at least `count` threads, `threads` a block. What `write` writes follows from the name, the parameters
  /// and the types.
  llvm::SmallVector<mlir::Value> launch(mlir::ImplicitLocOpBuilder &builder, llvm::StringRef name,
                                        llvm::ArrayRef<int64_t> parameters,
                                        llvm::ArrayRef<mlir::RankedTensorType> results, mlir::ValueRange operands,
                                        int64_t count, int64_t threads, WriteFn write);

private:
  mlir::ModuleOp module;
  std::string prefix;
  llvm::StringMap<std::string> kernels;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_DEVICELAUNCHES_H

//===- DeviceTables.h - A program's kernels and images for devices ----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_DEVICETABLES_H
#define DISTC_PASSES_LOWER_GPU_DEVICETABLES_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/lower/program/ProgramTables.h"

namespace distc {

/// The kernels of `gpu.module @kernels`, in order: a kernel's number in drt_device_code is its place. Before and behind
/// --lower-gpu-kernels.
llvm::SmallVector<mlir::FunctionOpInterface> getDeviceKernels(mlir::ModuleOp module);

/// The address of a drt_device_code; null in a program for CPUs. Fails with a diagnostic where a kernel has no grid or
/// no images are there.
llvm::FailureOr<mlir::Attribute> describeDevice(mlir::ModuleOp module, drt::ProgramOp program, ConstantTables &tables);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_DEVICETABLES_H

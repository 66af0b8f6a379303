//===- DeviceImages.h - From kernels in NVVM to what drivers load -----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_DEVICEIMAGES_H
#define DISTC_PASSES_LOWER_GPU_DEVICEIMAGES_H

#include "passes/lower/program/ObjectCache.h"
#include "passes/lower/program/Target.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <string>

namespace distc {

// `kernels`: the gpu.module with the kernels as LLVM IR, as MLIR translates it; it is used up.

/// PTX for `chip` and later ones of its line, optimized, with what it uses of libdevice. Fails where libdevice is not
/// found, and where a function has no code.
llvm::Expected<std::string> emitPtx(llvm::Module &kernels, llvm::StringRef chip);

/// A shared object for the emulated driver (runtime/cuda/emulator/emulated.h): each kernel is one thread's code. Fails
/// where a kernel uses what the emulator does not have.
llvm::Expected<std::string> emitHostKernels(llvm::Module &kernels, const Target &target, const ObjectCache &cache);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_DEVICEIMAGES_H

//===- KernelParts.h - Kernels that are compiled each by itself -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H
#define DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include <vector>

namespace distc {

/// On a function of LLVM's: a kernel, or what only kernels call.
inline constexpr llvm::StringLiteral kKernelFunctionAttr = "distc-kernel";

/// LLVM's bitcode of a module.
using Bitcode = llvm::SmallVector<char, 0>;

Bitcode writeBitcode(const llvm::Module &module);

/// Takes the kernels out of `module`: each as a module of its own, with all that it calls and the constants that it
/// reads. What is left calls them by new names, of their content: equal kernels have one, whatever program they are of,
/// and are there once.
std::vector<Bitcode> takeKernels(llvm::Module &module);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H

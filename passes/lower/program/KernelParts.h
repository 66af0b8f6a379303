//===- KernelParts.h - Kernels that are compiled each by itself -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H
#define DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace distc {

/// On a function of LLVM's: a kernel, or what only kernels call.
inline constexpr llvm::StringLiteral kKernelFunctionAttr = "distc-kernel";

/// LLVM's bitcode of a module.
using Bitcode = llvm::SmallVector<char, 0>;

Bitcode writeBitcode(const llvm::Module &module);

/// A kernel with all that it calls, and the constants that it reads.
struct KernelPart {
  std::string name; // of its content: equal kernels have one, whatever program they are of
  Bitcode code;     // a module that defines the function `name`, hidden
};

/// Takes the kernels out of `module`, where what is left calls them by their new names. Each is there once.
std::vector<KernelPart> takeKernels(llvm::Module &module);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_KERNELPARTS_H

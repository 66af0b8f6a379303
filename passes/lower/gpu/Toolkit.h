//===- Toolkit.h - What compiling uses of the CUDA toolkit ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_TOOLKIT_H
#define DISTC_PASSES_LOWER_GPU_TOOLKIT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace distc {

/// ptxas, which assembles PTX for one chip: in $CUDA_HOME/bin, on the PATH or in /usr/local/cuda/bin; none where there
/// is no toolkit.
std::optional<std::string> findPtxas();

/// libdevice.10.bc, NVIDIA's functions of <math.h> as LLVM bitcode: in $CUDA_HOME, beside ptxas or in /usr/local/cuda.
/// Fails with a message that says where it was looked for.
llvm::Expected<std::string> findLibdevice();

/// A cubin of `ptx` for `chip`. `log` is what ptxas says: the registers that each kernel uses, and what it spills.
llvm::Expected<std::string> assemble(llvm::StringRef ptxas, llvm::StringRef ptx, llvm::StringRef chip,
                                     std::string &log);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_TOOLKIT_H

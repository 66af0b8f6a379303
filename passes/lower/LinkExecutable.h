//===- LinkExecutable.h - An object and the runtime become one executable -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_LINKEXECUTABLE_H
#define DISTC_PASSES_LOWER_LINKEXECUTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace distc {

/// Links `object` with the runtime into `output`, by the system's C++ compiler (or $CXX). The flags stand in the file drt.link of
/// `runtimeFolder`, one a line; the build of the runtime writes it. `output` appears when it is complete, or not at all.
llvm::Error linkExecutable(llvm::ArrayRef<char> object, llvm::StringRef runtimeFolder, llvm::StringRef output);

} // namespace distc

#endif // DISTC_PASSES_LOWER_LINKEXECUTABLE_H

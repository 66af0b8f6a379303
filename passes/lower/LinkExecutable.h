//===- LinkExecutable.h - An object and the runtime become one executable -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_LINKEXECUTABLE_H
#define DISTC_PASSES_LOWER_LINKEXECUTABLE_H

#include "passes/lower/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace distc {

/// Links `object` with the runtime into `output`, by the system's C++ compiler (or $CXX). The flags stand in a file of
/// `runtimeFolder`, one a line, which the build of the runtime writes: drt.link, drt-cuda.link or
/// drt-cuda-emulated.link. `output` appears when it is complete, or not at all.
llvm::Error linkExecutable(llvm::ArrayRef<char> object, llvm::StringRef runtimeFolder, const Target &target,
                           llvm::StringRef output);

/// A shared object that is linked with the mathematical library; other symbols are found when it is opened.
llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace distc

#endif // DISTC_PASSES_LOWER_LINKEXECUTABLE_H

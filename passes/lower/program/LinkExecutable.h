//===- LinkExecutable.h - An object and the runtime become one executable -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_LINKEXECUTABLE_H
#define DISTC_PASSES_LOWER_PROGRAM_LINKEXECUTABLE_H

#include "passes/lower/program/ObjectCache.h"
#include "passes/lower/program/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace distc {

/// Generated code calls a function that the runtime does not have.
class MissingSymbolError : public llvm::ErrorInfo<MissingSymbolError> {
public:
  static char ID;
  explicit MissingSymbolError(std::string symbol) : symbol(std::move(symbol)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string symbol;
};

/// What of the runtime a program takes only where its plan needs it.
struct LinkedParts {
  bool collectives = false;  // it has several tasks
  bool tls = false;          // its tasks may encrypt what they say to each other: OpenSSL
  bool library = false;      // its matmuls are worth oneDNN's
  bool convolutions = false; // which take oneDNN anyway
};

/// Links `objects`, the program's first and those that it calls (emitObjects), with the runtime into `output`, by lld
/// with what a compiler would add, of the folder's `toolchain`; a runtime that is built with sanitizers has none, and
/// its programs are linked by a C++ compiler ($CXX). The flags stand in a file of `runtimeFolder`, one a line, which
/// the build of the runtime writes: drt.link, drt-cuda.link or drt-cuda-emulated.link. What the program calls of the
/// shared libraries in the folder's `carried` becomes part of `output`, which needs glibc alone. `output` appears when
/// it is complete, or not at all.
llvm::Error linkExecutable(llvm::ArrayRef<ObjectCode> objects, llvm::StringRef runtimeFolder, const Target &target,
                           LinkedParts parts, llvm::StringRef output);

/// A shared object of `objects` alone: symbols that it lacks are found when it is opened.
llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<ObjectCode> objects);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_LINKEXECUTABLE_H

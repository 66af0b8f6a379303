//===- SplitEntry.h - Large entries as several functions ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_SPLITENTRY_H
#define DISTC_PASSES_LOWER_PROGRAM_SPLITENTRY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace distc {

/// Makes of an entry of one long block, `void (ptr replica)`, functions of at most `maxOperations`, which it calls in
/// their order: register allocation takes time with the square of a function's calls. Addresses are computed again
/// where they are needed; what else one function makes for another is passed in memory of the entry.
void splitEntry(mlir::LLVM::LLVMFuncOp entry, unsigned maxOperations);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_SPLITENTRY_H

//===- IrText.h - Text of IR that may be damaged ---------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_IRTEXT_H
#define DISTC_DIALECTS_DFG_IRTEXT_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace distc::dfg {

/// Fails with a diagnostic in file `path` where `text` names a result (`%value#N`) of a number that no operation has,
/// or a vector of more elements than any register: the parser would make room for as many, and end the process where
/// there is none. And where it has an array of index, which the parser takes for one of integers of no width.
llvm::LogicalResult checkIrText(llvm::StringRef text, llvm::StringRef path, mlir::MLIRContext *context);

/// Whether MLIR's parsers come through in `parse`. Those of its own dialects read wild memory at texts that no printer
/// writes: linalg.generic's takes every attribute of its iterator_types for a string. Where they do not, the process
/// should end at once.
/// Readers of bytecode may go round for ever in bytes that no printer wrote: after ten seconds of processor time, and
/// one for each megabyte of `path`, the process ends with exit status 1 and an error that names it.
bool survivesParsing(llvm::function_ref<void()> parse, llvm::StringRef path);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_IRTEXT_H

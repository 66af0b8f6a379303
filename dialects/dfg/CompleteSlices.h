//===- CompleteSlices.h - Tables that a graph itself splits ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_COMPLETESLICES_H
#define DISTC_DIALECTS_DFG_COMPLETESLICES_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// Of `slices` (kSlicesAttr; null: there are none) those of tables of which `hasVariable` says that every part is
/// there: a variable's name, and its slice. A checkpoint has a table whole or not at all: where some part is missing,
/// the others have their own names there.
llvm::SmallVector<std::pair<llvm::StringRef, SliceAttr>>
findCompleteSlices(mlir::DictionaryAttr slices, llvm::function_ref<bool(llvm::StringRef variable)> hasVariable);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_COMPLETESLICES_H

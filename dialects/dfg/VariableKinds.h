//===- VariableKinds.h - Kinds of dfg.variable ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_VARIABLEKINDS_H
#define DISTC_DIALECTS_DFG_VARIABLEKINDS_H

#include "llvm/ADT/StringRef.h"

namespace distc::dfg {

// Beside "resource" and "ref", which a graph's author chose:

/// A variable that the graph of a concrete function captured.
inline constexpr llvm::StringLiteral kCapturedKind = "captured";
/// A replica's own, which a pass added: it begins as zeros, and no checkpoint has it.
inline constexpr llvm::StringLiteral kLocalKind = "local";

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_VARIABLEKINDS_H

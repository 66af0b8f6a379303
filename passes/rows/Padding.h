//===- Padding.h - Indices of rows that are not there --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_ROWS_PADDING_H
#define DISTC_PASSES_ROWS_PADDING_H

#include "llvm/ADT/StringRef.h"

namespace distc {

/// On a node that gives the index -1 to rows that are not there, which is no mistake of the data.
inline constexpr llvm::StringLiteral kPaddingAttr = "dfg.padding";

} // namespace distc

#endif // DISTC_PASSES_ROWS_PADDING_H

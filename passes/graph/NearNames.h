//===- NearNames.h - Names that may have been meant -------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_NEARNAMES_H
#define DISTC_PASSES_GRAPH_NEARNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace distc {

/// "; did you mean 'a', 'b'?", the nearest first, or "" where nothing is near.
std::string listNearNames(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known);

} // namespace distc

#endif // DISTC_PASSES_GRAPH_NEARNAMES_H

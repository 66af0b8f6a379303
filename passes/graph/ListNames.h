//===- ListNames.h - Names in a diagnostic ----------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_LISTNAMES_H
#define DISTC_PASSES_GRAPH_LISTNAMES_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"

namespace distc {

/// Appends " 'a', 'b' and 7 more", of `most` names.
template <typename Names> void listNames(mlir::Diagnostic &text, Names &&names, size_t most = 5) {
  size_t count = 0;
  for (llvm::StringRef name : names)
    if (++count <= most)
      text << (count > 1 ? ", '" : " '") << name << "'";
  if (count > most)
    text << " and " << count - most << " more";
}

} // namespace distc
#endif // DISTC_PASSES_GRAPH_LISTNAMES_H

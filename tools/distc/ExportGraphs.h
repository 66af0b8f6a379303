//===- ExportGraphs.h - distc compile --emit=graphdef -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_EXPORTGRAPHS_H
#define DISTC_TOOLS_DISTC_EXPORTGRAPHS_H

#include "tools/distc/Session.h"

namespace distc {

/// Writes cluster.json and worker-K.meta of a distributed module (with topology and synchronizers) into `folder`, all
/// of them or none; `batch` is the global one, 0 where the graph fixes it. Returns the exit status.
int exportGraphs(Session &session, mlir::ModuleOp module, llvm::StringRef folder, int64_t batch);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_EXPORTGRAPHS_H

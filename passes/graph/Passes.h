//===- Passes.h - Passes over the graph -----------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_PASSES_H
#define DISTC_PASSES_GRAPH_PASSES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/Pass/Pass.h"

namespace distc {

/// On a module behind `dfg-extract-entries`: the names of the graph's placeholders (array of strings), since entries
/// have only those that they need.
inline constexpr llvm::StringLiteral kPlaceholdersAttr = "dfg.placeholders";

/// On the module, once entries are taken from the graph: the tags of its scalar summaries, by tensor name.
inline constexpr llvm::StringLiteral kSummariesAttr = "dfg.summaries";

/// On the module, once entries are taken from the graph: its `objects` (dialects/dfg/tensorflow/Import.h).
inline constexpr llvm::StringLiteral kProgramObjectsAttr = "dfg.objects";

#define GEN_PASS_DECL
#include "passes/graph/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/graph/Passes.h.inc"

} // namespace distc

#endif // DISTC_PASSES_GRAPH_PASSES_H

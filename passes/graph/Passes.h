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

#define GEN_PASS_DECL
#include "passes/graph/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/graph/Passes.h.inc"

} // namespace distc

#endif // DISTC_PASSES_GRAPH_PASSES_H

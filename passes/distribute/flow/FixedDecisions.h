//===- FixedDecisions.h - What a fixed batch's size decides in functions -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDDECISIONS_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDDECISIONS_H

#include "dialects/dfg/Dfg.h"

namespace distc {

/// Of a graph that keeps its control flow (exports) and fixes its batch to `rows`: a condition or a loop of the graph,
/// among those in `needed`, that a number decides which may be the batch's size, or by which one inside of it is
/// decided, and which may be decided otherwise of some number of times the rows. Null where there is none.
mlir::Operation *findFixedDecision(dfg::GraphOp graph, int64_t rows,
                                   llvm::function_ref<bool(mlir::Operation *)> needed);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDDECISIONS_H

//===- SmallestBatch.h - How many examples a graph needs at least ----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SMALLESTBATCH_H
#define DISTC_DIALECTS_DFG_SMALLESTBATCH_H

#include "mlir/IR/Operation.h"

namespace distc::dfg {

/// On a graph: how many examples the whole batch must have for the graph to be what its author wrote. Who fixes the
/// batch checks it.
inline constexpr llvm::StringLiteral kSmallestBatchAttr = "smallest_batch";

/// That of the graph which `op` stands in, or 1.
int64_t getSmallestBatch(mlir::Operation *op);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SMALLESTBATCH_H

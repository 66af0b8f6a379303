//===- BatchMultiple.h - A batch that has equal parts -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_BATCHMULTIPLE_H
#define DISTC_DIALECTS_DFG_BATCHMULTIPLE_H

#include "mlir/IR/Operation.h"

namespace distc::dfg {

/// On the module: each replica's examples, and so those of the whole batch, are a multiple of this number k (1 where it
/// does not say). The sizes b and B of ShapeContext.h are one k-th of them then: a step that takes its batch apart into
/// k equal parts has parts of b.
inline constexpr llvm::StringLiteral kBatchMultipleAttr = "dfg.batch_multiple";

/// k of the module that `op` is or stands in.
int64_t getBatchMultiple(mlir::Operation *op);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_BATCHMULTIPLE_H

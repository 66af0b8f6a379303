//===- Feeds.h - What --feed says of placeholders -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_FEEDS_H
#define DISTC_TOOLS_DISTC_FEEDS_H

#include "mlir/IR/BuiltinOps.h"
#include "tools/distc/Options.h"

namespace distc {

/// Settles, before an imported graph is distributed, what its placeholders leave open:
/// - one without a shape is taken for a scalar (a rate, a probability, whether it trains), of which a remark tells;
/// such
///   a NAME= is added to options.feeds;
/// - one with an open first size that --feed gives a shape of other than a share's rows is fed whole, and no batch.
/// Fails with a diagnostic where --feed gives a placeholder the global batch's rows instead of a share's.
llvm::LogicalResult settleFeeds(mlir::ModuleOp module, CompileOptions &options);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_FEEDS_H

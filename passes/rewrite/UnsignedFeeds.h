//===- UnsignedFeeds.h - Feeds of integers without a sign --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_REWRITE_UNSIGNEDFEEDS_H
#define DISTC_PASSES_REWRITE_UNSIGNEDFEEDS_H

#include "llvm/ADT/StringRef.h"

namespace distc {

/// On a placeholder of signless integers, and on its `drt.feed`: the integers that the data have are unsigned ones.
inline constexpr llvm::StringLiteral kUnsignedFeedAttr = "dfg.unsigned";

} // namespace distc

#endif // DISTC_PASSES_REWRITE_UNSIGNEDFEEDS_H

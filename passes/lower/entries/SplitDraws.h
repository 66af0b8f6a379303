//===- SplitDraws.h - Parts of random tensors are drawn by themselves -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_ENTRIES_SPLITDRAWS_H
#define DISTC_PASSES_LOWER_ENTRIES_SPLITDRAWS_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/StringRef.h"

namespace distc::lower {

/// Integers of a random node, and of what it is lowered to: the elements of the tensor that it draws a part of, and the
/// first of its own (drt_random_desc).
inline constexpr llvm::StringLiteral kDrawnWholeAttr = "drawn_whole", kDrawnFirstAttr = "drawn_first";

/// The parts along the first axis of a tensor that is made, element by element, of random numbers which nothing else
/// reads: each part draws its own, the same ones. So the initial value of a table in shards is never there as a whole,
/// and whoever holds one shard draws no other. All sizes are known.
void splitDraws(mlir::Block &block);

} // namespace distc::lower

#endif // DISTC_PASSES_LOWER_ENTRIES_SPLITDRAWS_H

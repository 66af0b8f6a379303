//===- Generators.h - Nodes that draw from one generator -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_GENERATORS_H
#define DISTC_DIALECTS_DFG_GENERATORS_H

#include "llvm/ADT/StringRef.h"

namespace distc::dfg {

/// A name. Nodes of an entry that have the same draw from one generator of random numbers, in block order: what a node
/// with a seed in a loop becomes, one an iteration. Without it each node's is its own. Lowering keeps it on
/// `drt.random`.
inline constexpr llvm::StringLiteral kGeneratorAttr = "generator";

/// An integer, of a random node. What a run moves the generator on by is so many positions (four words each) for each
/// row of the result's first axis, where TensorFlow's operation that it comes of reserves others than 256 an element.
/// Lowering adds them up in `reserved` of `drt.random`.
inline constexpr llvm::StringLiteral kReservedAttr = "reserved_per_row";

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_GENERATORS_H

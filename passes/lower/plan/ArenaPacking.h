//===- ArenaPacking.h - Places for tensors that live for a while ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_ARENAPACKING_H
#define DISTC_PASSES_LOWER_PLAN_ARENAPACKING_H

#include "llvm/ADT/ArrayRef.h"

namespace distc {

inline constexpr int64_t kPlaceAlignment = 64;

/// Memory that is in use from the operation `begin` to the operation `end`, both included.
struct LiveBlock {
  int64_t bytes = 0;
  int64_t begin = 0, end = 0;
  int64_t place = -1; // set by packArena: offset in bytes, aligned to kPlaceAlignment
};

/// Places the blocks so that no two that are in use at the same time overlap; returns the bytes needed. The largest
/// blocks are placed by decreasing size into the smallest gap that holds them ("greedy by size", Pisarchyk and Lee,
/// 2020), which is quadratic, so only the few thousand that make up nearly all of the memory; the rest lies above them,
/// best fit in order of time.
int64_t packArena(llvm::MutableArrayRef<LiveBlock> blocks);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_ARENAPACKING_H

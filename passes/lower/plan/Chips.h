//===- Chips.h - What chips can do, by their data sheets ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_CHIPS_H
#define DISTC_PASSES_LOWER_PLAN_CHIPS_H

#include "passes/lower/plan/MatmulType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace distc {

/// The figures of a chip's data sheet, dense, without sparsity.
struct Chip {
  llvm::StringLiteral arch, name;
  double memoryBytes;                 // a second
  double flops, tf32Flops, bf16Flops; // a second: of float32; of matrix units
  double linkBytes;                   // a second, to other devices of the host, in one direction
  double launchSeconds;               // between two kernels of a captured graph

  double getMatmulFlops(MatmulType type) const;
};

llvm::ArrayRef<Chip> getChips();
/// Null where there are no figures of it.
const Chip *findChip(llvm::StringRef arch);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_CHIPS_H

//===- Chips.cpp - What chips can do, by their data sheets -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/Chips.h"

#include "llvm/ADT/STLExtras.h"

namespace distc {

/// A captured graph's kernels follow each other by some 2 us where each waits for the one before.
static constexpr double kLaunchSeconds = 2e-6;

// NVIDIA's data sheets: A100 80 GB SXM (2021), H100 SXM (2023), B200 as in HGX (2024).
static constexpr Chip kChips[] = {
    {"sm_80", "A100 SXM 80 GB", 2.039e12, 19.5e12, 156e12, 312e12, 300e9, kLaunchSeconds},
    {"sm_90", "H100 SXM", 3.35e12, 67e12, 495e12, 989e12, 450e9, kLaunchSeconds},
    {"sm_100", "B200", 8e12, 75e12, 1.1e15, 2.25e15, 900e9, kLaunchSeconds},
};

double Chip::getMatmulFlops(MatmulType type) const {
  switch (type) {
  case MatmulType::F32:
    return flops;
  case MatmulType::TF32:
    return tf32Flops;
  case MatmulType::BF16:
    break;
  }
  return bf16Flops;
}

llvm::ArrayRef<Chip> getChips() { return kChips; }

const Chip *findChip(llvm::StringRef arch) {
  const auto *found = llvm::find_if(kChips, [&](const Chip &chip) { return chip.arch == arch; });
  return found == std::end(kChips) ? nullptr : found;
}

} // namespace distc

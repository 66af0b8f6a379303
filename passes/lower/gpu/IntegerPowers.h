//===- IntegerPowers.h - Powers of integers as loops ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_INTEGERPOWERS_H
#define DISTC_PASSES_LOWER_GPU_INTEGERPOWERS_H

#include "mlir/IR/PatternMatch.h"

namespace distc {

/// `math.ipowi` of scalars, which neither LLVM nor libdevice has, by squaring (Knuth, The Art of Computer Programming,
/// vol. 2, 4.6.3).
void populateIntegerPowerPatterns(mlir::RewritePatternSet &patterns);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_INTEGERPOWERS_H

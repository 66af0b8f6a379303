//===- MatmulType.h - What matmuls of float32 are made of --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_MATMULTYPE_H
#define DISTC_PASSES_LOWER_PLAN_MATMULTYPE_H

#include "mlir/IR/Operation.h"

namespace distc {

/// Matmuls of float32 are made of float32 itself, or of what matrix units take of it; sums are float32.
enum class MatmulType { F32, TF32, BF16 };
inline constexpr MatmulType kMatmulTypes[] = {MatmulType::F32, MatmulType::TF32, MatmulType::BF16};
/// "fp32", "tf32", "bf16".
llvm::StringRef getName(MatmulType type);

/// What the plan says of a matmul or a convolution, by its precision and by the type of its operands; of anything
/// else, F32.
MatmulType getMatmulType(mlir::Operation *op);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_MATMULTYPE_H

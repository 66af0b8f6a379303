//===- ProductType.h - What products of float32 are made of --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_PRODUCTTYPE_H
#define DISTC_PASSES_LOWER_PLAN_PRODUCTTYPE_H

#include "mlir/IR/Operation.h"

namespace distc {

/// Products of float32 are made of float32 itself, or of what matrix units take of it; sums are float32.
enum class ProductType { F32, TF32, BF16 };
inline constexpr ProductType kProductTypes[] = {ProductType::F32, ProductType::TF32, ProductType::BF16};
/// "fp32", "tf32", "bf16".
llvm::StringRef getName(ProductType type);

/// What the plan says of a product or a convolution, by its precision and by the type of its operands; of anything
/// else, F32.
ProductType getProductType(mlir::Operation *op);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_PRODUCTTYPE_H

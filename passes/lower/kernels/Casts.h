//===- Casts.h - Conversions of elements ----------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_CASTS_H
#define DISTC_PASSES_LOWER_KERNELS_CASTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace distc {

/// What `Cast` alone converts, element by element, in an operation; null where it does anything else.
template <typename Cast> mlir::Value getCast(mlir::Operation *op) {
  auto generic = llvm::dyn_cast_or_null<mlir::linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 1 || generic->getNumResults() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](mlir::AffineMap map) { return map.isIdentity(); }))
    return {};
  auto cast = generic.getBody()->getTerminator()->getOperand(0).getDefiningOp<Cast>();
  return cast && cast.getIn() == generic.getBody()->getArgument(0) ? generic.getInputs()[0] : mlir::Value();
}

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_CASTS_H

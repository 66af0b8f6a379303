//===- ShapeSupport.h - What shape functions share --------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SHAPES_SHAPESUPPORT_H
#define DISTC_DIALECTS_DFG_SHAPES_SHAPESUPPORT_H

#include "dialects/dfg/shapes/ShapeFunctions.h"

namespace distc::dfg::shapes {

/// Whether the value is a tensor of integers (or bools), whose elements may be sizes.
bool isInteger(mlir::Value value);

/// Fails with a diagnostic where an operand is known to be no scalar (a tensor of one element will do where `orOne`).
llvm::LogicalResult checkScalar(mlir::Operation *op, ShapeContext &context, unsigned operand, bool orOne = false);

/// The sizes that a vector of them names, checked; none where they are not known.
llvm::FailureOr<std::optional<Dims>> getSizes(mlir::Operation *op, ShapeContext &context, unsigned operand);

/// The number of elements of a tensor of these sizes.
Dim product(llvm::ArrayRef<Dim> sizes);

/// By numpy's rules; fails with a diagnostic where sizes differ that are known, and neither is 1.
llvm::FailureOr<Dims> broadcastShapes(mlir::Operation *op, llvm::ArrayRef<Dim> x, llvm::ArrayRef<Dim> y);

} // namespace distc::dfg::shapes

#endif // DISTC_DIALECTS_DFG_SHAPES_SHAPESUPPORT_H

//===- OperandRoles.h - What an operation makes of its operands -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What the rules of the batch's flow ask of an operation alone, whatever flows into it.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_OPERANDROLES_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_OPERANDROLES_H

#include "dialects/dfg/Dfg.h"
#include <optional>

namespace distc {

/// A type that the graph does not say is taken for a float: nothing is computed with it elsewhere.
bool isFloatOrUnknown(mlir::Value value);

/// As the operation declares it, and of integers and casts what is left of it: they round.
dfg::Linearity getLinearity(mlir::Operation *op);

/// The operands that the result depends on linearly, or might: not shapes, axes, indices and conditions.
llvm::SmallVector<mlir::Value> getData(mlir::Operation *op);

/// The operands that the result is linear in, as the declaration says, and the others that it is computed from.
void sortOperands(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &linear,
                  llvm::SmallVectorImpl<mlir::Value> &others);

/// What a function of values N^s times as large is: N^(degree * s) times as large. None: it is no power of N. Of all
/// operands together.
std::optional<double> getDegree(mlir::Operation *op);

/// Whether a result without the batch's axis is a sum over it: reductions by sums, matmuls, and gradients of
/// broadcasts.
bool sumsOverBatch(mlir::Operation *op);

bool isZeroConstant(mlir::Operation *op);

/// Whether op's elements are some of its operands', unchanged.
bool choosesElements(mlir::Operation *op);

/// Whether op makes a float or a wider integer of an integer. A sum over the batch is one modulo a power of two: of the
/// replicas' parts, the sum of what is made of each is another number.
bool leavesModulus(mlir::Operation *op);

/// Of a product, where both are known.
std::optional<int> addScales(std::optional<int> x, std::optional<int> y);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_OPERANDROLES_H

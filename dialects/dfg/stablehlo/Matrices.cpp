//===- Matrices.cpp - Linear algebra: factors and solutions -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include <numeric>

using namespace mlir;

namespace distc::stablehlo {

/// The permutation that turns the last two of `rank` axes.
static Ints turnMatrices(size_t rank) {
  Ints permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return permutation;
}

Converter::Result Converter::cholesky(Operation *op, Values operands, Builder &g) {
  if (getFlag(op, "lower"))
    return one(g, g.make<dfg::CholeskyOp>({operands[0]}));
  // The upper triangle is the lower one of the turned matrix, and so is the factor.
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape) || shape->size() < 2)
    return fail(g, "takes no matrices");
  Ints turned = turnMatrices(shape->size());
  return one(g, g.transpose(g.make<dfg::CholeskyOp>({g.transpose(operands[0], turned)}), turned));
}

Converter::Result Converter::triangularSolve(Operation *op, Values operands, Builder &g) {
  Value matrix = operands[0], rhs = operands[1];
  FailureOr<Dims> shape = g.getShape(matrix);
  if (failed(shape))
    return failure();
  if (shape->size() < 2)
    return fail(g, "takes no matrices");
  StringRef form = getKeyword(op, "transpose_a");
  if (!llvm::is_contained({"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}, form))
    return fail(g, "does not say whether its matrix is turned");
  bool isAdjoint = form != "NO_TRANSPOSE"; // of real numbers both are the same
  if (getFlag(op, "unit_diagonal")) {
    // What lies on the diagonal is not looked at.
    Type element = Builder::elementOf(matrix), i32 = g.builder.getI32Type();
    Value column = g.positions(matrix, shape->size() - 1, i32);
    Value row = g.expandDims(g.positions(matrix, shape->size() - 2, i32), 1);
    Value isDiagonal = g.equal(row, column);
    matrix = g.select(isDiagonal, g.scalar(element, 1), matrix);
  }
  const Ints turned = turnMatrices(shape->size());
  // x op(a) = b is op(a)' x' = b'.
  const bool isLeft = getFlag(op, "left_side");
  if (!isLeft) {
    rhs = g.transpose(rhs, turned);
    isAdjoint = !isAdjoint;
  }
  Value solution = g.make<dfg::MatrixTriangularSolveOp>(
      {matrix, rhs}, {g.flag("lower", getFlag(op, "lower")), g.flag("adjoint", isAdjoint)});
  return one(g, isLeft ? solution : g.transpose(solution, turned));
}

} // namespace distc::stablehlo

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

static FailureOr<SmallVector<Value>> all(dfg::GraphBuilder &g, SmallVector<Value> values) {
  if (g.failed() || llvm::is_contained(values, Value()))
    return failure();
  return values;
}

/// None where what is given has no matrices.
static std::optional<Ints> turnMatrices(dfg::GraphBuilder &g, Value matrices) {
  FailureOr<dfg::Dims> shape = g.getShape(matrices);
  if (failed(shape))
    return std::nullopt;
  if (shape->size() < 2)
    return (void)g.fail("takes no matrices"), std::nullopt;
  return turnMatrices(shape->size());
}

Value Converter::factorCholesky(Builder &g, Value matrix, bool isLower) {
  if (isLower)
    return g.make<dfg::CholeskyOp>({matrix});
  // The upper triangle is the lower one of the turned matrix, and so is the factor.
  std::optional<Ints> turned = turnMatrices(g, matrix);
  return turned ? g.transpose(g.make<dfg::CholeskyOp>({g.transpose(matrix, *turned)}), *turned) : Value();
}

Value Converter::solveTriangle(Builder &g, Value matrix, Value rhs, Triangle triangle) {
  std::optional<Ints> turned = turnMatrices(g, matrix);
  if (!turned)
    return {};
  const size_t rank = turned->size();
  if (triangle.hasUnitDiagonal) {
    // What lies on the diagonal is not looked at.
    Type element = Builder::elementOf(matrix), i32 = g.builder.getI32Type();
    Value column = g.positions(matrix, rank - 1, i32);
    Value row = g.expandDims(g.positions(matrix, rank - 2, i32), 1);
    Value isDiagonal = g.equal(row, column);
    matrix = g.select(isDiagonal, g.scalar(element, 1), matrix);
  }
  // x op(a) = b is op(a)' x' = b'.
  if (!triangle.isLeft)
    rhs = g.transpose(rhs, *turned);
  Value solution = g.make<dfg::MatrixTriangularSolveOp>(
      {matrix, rhs}, {g.flag("lower", triangle.isLower), g.flag("adjoint", triangle.isAdjoint == triangle.isLeft)});
  return triangle.isLeft ? solution : g.transpose(solution, *turned);
}

Converter::Result Converter::cholesky(Operation *op, Values operands, Builder &g) {
  return one(g, factorCholesky(g, operands[0], getFlag(op, "lower")));
}

Converter::Result Converter::triangularSolve(Operation *op, Values operands, Builder &g) {
  StringRef form = getKeyword(op, "transpose_a");
  if (!llvm::is_contained({"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}, form))
    return fail(g, "does not say whether its matrix is turned");
  // Of real numbers both are the same.
  return one(g, solveTriangle(g, operands[0], operands[1],
                              {getFlag(op, "left_side"), getFlag(op, "lower"), form != "NO_TRANSPOSE",
                               getFlag(op, "unit_diagonal")}));
}

// ---- Calls of libraries ---------------------------------------------------------------------------

Converter::Form Converter::findLibraryCall(StringRef target) {
  using C = Converter;
  static const llvm::StringMap<Form> table = {
      {"Qr", {&C::householderFactors, 1}},    {"ProductOfElementaryHouseholderReflectors", {&C::householderProduct, 2}},
      {"geqrf", {&C::householderFactors, 1}}, {"orgqr", {&C::householderProduct, 2}},
      {"potrf", {&C::libraryCholesky, 1}},    {"trsm", {&C::librarySolve, 2}},
      {"getrf", {&C::libraryLu, 1}},          {"syevd", {&C::selfAdjointEig, 1}},
      {"gesdd", {&C::singularValues, 1}},     {"gesvd", {&C::singularValues, 1}},
  };
  // Of real numbers, with the order of arguments that has a name of its own.
  if (target.consume_front("lapack_") &&
      !((target.consume_front("s") || target.consume_front("d")) && target.consume_back("_ffi")))
    return {};
  return table.lookup(target);
}

/// The letter by which LAPACK's routines are told what to do; 0 where the call does not say.
static char getLetter(Operation *op, StringRef name) {
  for (StringRef attribute : {"mhlo.backend_config", "backend_config"})
    if (auto config = op->getAttrOfType<DictionaryAttr>(attribute))
      if (auto letter = config.getAs<IntegerAttr>(name))
        return static_cast<char>(letter.getValue().getZExtValue());
  return 0;
}

Value Converter::makeZeros(Operation *op, unsigned result, Value like, Builder &g) {
  auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(result).getType());
  FailureOr<Dims> shape = g.getShape(like);
  if (!type || failed(shape))
    return {};
  Dims sizes;
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    if (ShapedType::isDynamic(size) && axis + 2 >= shape->size())
      return (void)g.fail("has matrices whose size is the batch's"), Value();
    sizes.push_back(ShapedType::isDynamic(size) ? (*shape)[axis] : Dim(size));
  }
  Value zero = g.scalar(elementOfResult(op, result), 0);
  return sizes.empty() ? zero : g.broadcastTo(zero, g.sizes(sizes, like));
}

/// What is looked at of what a routine leaves undefined.
static bool isRead(Operation *op, ArrayRef<unsigned> results) {
  return llvm::any_of(results, [&](unsigned result) { return !op->getResult(result).use_empty(); });
}

Converter::Result Converter::libraryCholesky(Operation *op, Values operands, Builder &g) {
  const char triangle = getLetter(op, "uplo");
  if (op->getNumResults() != 2 || (triangle != 'L' && triangle != 'U'))
    return fail(g, "does not say which triangle of its matrix it reads");
  // Whether there is a factor is no question: without one the program ends.
  Value factor = factorCholesky(g, operands[0], triangle == 'L'), info = makeZeros(op, 1, operands[0], g);
  return all(g, {factor, info});
}

Converter::Result Converter::librarySolve(Operation *op, Values operands, Builder &g) {
  const char side = getLetter(op, "side"), triangle = getLetter(op, "uplo"), form = getLetter(op, "trans_x"),
             diagonal = getLetter(op, "diag");
  auto isOneOf = [](char letter, StringRef letters) { return letter && letters.contains(letter); };
  if (!isOneOf(side, "LR") || !isOneOf(triangle, "LU") || !isOneOf(form, "NTC") || !isOneOf(diagonal, "NU"))
    return fail(g, "does not say which triangle of its matrix it solves with, and from which side");
  return one(g,
             solveTriangle(g, operands[0], operands[1], {side == 'L', triangle == 'L', form != 'N', diagonal == 'U'}));
}

Converter::Result Converter::libraryLu(Operation *op, Values operands, Builder &g) {
  if (op->getNumResults() != 3)
    return fail(g, "has other results than factors, pivots and whether there are some");
  Values results = g.makeAll<dfg::LuPivotsOp>({operands[0]}, {Builder::elementOf(operands[0]), elementOfResult(op, 1)});
  results.push_back(makeZeros(op, 2, operands[0], g));
  return all(g, results);
}

Converter::Result Converter::householderFactors(Operation *, Values operands, Builder &g) {
  Type element = Builder::elementOf(operands[0]);
  Values results = g.makeAll<dfg::HouseholderFactorsOp>({operands[0]}, {element, element});
  return all(g, results);
}

Converter::Result Converter::householderProduct(Operation *, Values operands, Builder &g) {
  return one(g, g.make<dfg::HouseholderProductOp>({operands[0], operands[1]}));
}

Converter::Result Converter::selfAdjointEig(Operation *op, Values operands, Builder &g) {
  const char mode = getLetter(op, "mode"), triangle = getLetter(op, "uplo");
  if (op->getNumResults() != 3 || (mode != 'V' && mode != 'N') || (triangle != 'L' && triangle != 'U'))
    return fail(g, "does not say which triangle of its matrix it reads, and whether it gives vectors");
  Value matrix = operands[0];
  std::optional<Ints> turned = turnMatrices(g, matrix);
  if (!turned)
    return failure();
  const bool hasVectors = mode == 'V';
  if (!hasVectors && isRead(op, 0))
    return fail(g, "gives no eigenvectors, which are read");
  if (triangle == 'U')
    matrix = g.transpose(matrix, *turned);
  Type element = Builder::elementOf(matrix);
  Values found = g.makeAll<dfg::SelfAdjointEigOp>({matrix}, {element, element}, g.flag("compute_v", hasVectors));
  if (g.failed() || found.size() != 2)
    return failure();
  Values results = {hasVectors ? found[1] : makeZeros(op, 0, matrix, g), found[0], makeZeros(op, 2, matrix, g)};
  return all(g, results);
}

Converter::Result Converter::singularValues(Operation *op, Values operands, Builder &g) {
  const char mode = getLetter(op, "mode");
  if (op->getNumResults() != 5 || !mode || !StringRef("ASN").contains(mode))
    return fail(g, "does not say which singular vectors it gives");
  const bool hasVectors = mode != 'N';
  if (isRead(op, 0) || (!hasVectors && isRead(op, {2, 3})))
    return fail(g, "leaves undefined what is read of its results");
  Value matrix = operands[0];
  std::optional<Ints> turned = turnMatrices(g, matrix);
  if (!turned)
    return failure();
  Type element = Builder::elementOf(matrix);
  Values found = g.makeAll<dfg::SvdOp>({matrix}, {element, element, element},
                                       {g.flag("compute_uv", hasVectors), g.flag("full_matrices", mode == 'A')});
  if (g.failed() || found.size() != 3)
    return failure();
  Values results = {matrix, found[0], hasVectors ? found[1] : makeZeros(op, 2, matrix, g),
                    hasVectors ? g.transpose(found[2], *turned) : makeZeros(op, 3, matrix, g),
                    makeZeros(op, 4, matrix, g)};
  return all(g, results);
}

} // namespace distc::stablehlo

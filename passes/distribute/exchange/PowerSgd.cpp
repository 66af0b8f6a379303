//===- PowerSgd.cpp - Gradients as products of two thin matrices -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// As runtime/cpu/power_sgd.cpp (Vogels, Karimireddy and Jaggi 2019), with the same
// numbers to begin with. M_r is replica r's gradient and what it lost before:
//
//   P = orthogonalize(sum of M_r Q), Q_r = M_r^T P, Q = sum or mean of Q_r
//   the gradient is P Q^T; r keeps M_r - P Q_r^T
//
// P and the gradients that are no matrices worth it travel in one collective, Q in
// another.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/exchange/Exchange.h"

using namespace mlir;

namespace distc {
namespace {

/// A number of (-1, 1), the one of the runtime (splitmix64; Steele, Lea and Flood 2014).
constexpr uint64_t kStep = 0x9E3779B97F4A7C15, kFirstFactor = 0xBF58476D1CE4E5B9, kSecondFactor = 0x94D049BB133111EB;
constexpr int kDrawnBits = 24;

float draw(uint64_t index) {
  uint64_t z = (index + 1) * kStep;
  z = (z ^ (z >> 30)) * kFirstFactor;
  z = (z ^ (z >> 27)) * kSecondFactor;
  z ^= z >> 31;
  constexpr int64_t half = 1 << (kDrawnBits - 1);
  return static_cast<float>(static_cast<int64_t>(z >> (64 - kDrawnBits)) - half) / static_cast<float>(half);
}

class PowerSgd {
public:
  PowerSgd(Exchange &exchange, const Issue &issue, bool mean, dist::Spec spec, int64_t rank)
      : exchange(exchange), nodes(exchange.nodes), builder(nodes.getBuilder()), issue(issue), spec(spec),
        scale(mean ? 1.0 / static_cast<double>(exchange.replicas) : 1.0) {
    for (unsigned member = 0; member < issue.front()->getNumOperands(); ++member)
      addMember(member, rank);
  }

  /// The sums or means over all replicas.
  SmallVector<Value> run() {
    SmallVector<Value> sent, rights;
    for (Matrix &matrix : matrices)
      sent.push_back(projectRows(matrix));
    for (unsigned member : plain)
      sent.push_back(scaled("plain", sumLocal("plain/sum", member)));
    sent = sumOverTasks(sent);
    for (auto [matrix, left] : llvm::zip(matrices, sent))
      orthogonalize(matrix, left);
    for (Matrix &matrix : matrices)
      rights.push_back(projectColumns(matrix));
    rights = sumOverTasks(rights);
    SmallVector<Value> results(issue.front()->getNumOperands());
    for (auto [matrix, right] : llvm::zip(matrices, rights)) {
      Value product = multiply("product", matrix.p, right, Transposed::Second);
      auto type = llvm::cast<RankedTensorType>(issue.front()->getOperand(matrix.member).getType());
      results[matrix.member] = nodes.reshape("decompressed", product, type.getShape());
    }
    for (auto [member, value] : llvm::zip(plain, llvm::drop_begin(sent, matrices.size())))
      results[member] = value;
    keep(rights);
    return results;
  }

private:
  enum class Transposed { None, First, Second };
  struct Matrix {
    unsigned member;
    int64_t rows, columns, rank;
    /// Q's variable, and its value of the step before.
    Value handle, q;
    /// Each local replica's M_r and the variable of what it lost.
    SmallVector<Value> wholes, errors;
    Value p;
    /// [rank]: where a column of P had nothing of its own.
    Value lost;
  };

  NamedAttribute type(llvm::StringRef name, Type value) { return nodes.attribute(name, value); }
  RankedTensorType matrixType(int64_t m, int64_t n, Type element) { return RankedTensorType::get({m, n}, element); }
  RankedTensorType vectorType(int64_t n, Type element) { return RankedTensorType::get({n}, element); }
  Type narrow() { return builder.getF32Type(); }
  Type wide() { return builder.getF64Type(); }

  void addMember(unsigned member, int64_t wantedRank) {
    auto type = llvm::cast<RankedTensorType>(issue.front()->getOperand(member).getType());
    int64_t columns = type.getRank() < 2 ? 1 : type.getShape().back();
    int64_t rows = columns > 0 ? type.getNumElements() / columns : 0;
    int64_t rank = std::min({wantedRank, rows, columns});
    if ((rows + columns) * rank >= rows * columns) {
      plain.push_back(member);
      return;
    }
    SmallVector<float> first(columns * rank);
    for (float &element : first)
      element = draw(drawn++);
    Value handle =
        exchange.addState("q", DenseElementsAttr::get(matrixType(columns, rank, narrow()), ArrayRef<float>(first)));
    matrices.push_back({member, rows, columns, rank, handle, exchange.readState("q/Read", handle), {}, {}, {}, {}});
  }

  Value sumLocal(llvm::StringRef name, unsigned member) {
    SmallVector<Value> values;
    for (Operation *op : issue)
      values.push_back(op->getOperand(member));
    return sum(name, values);
  }
  Value sum(llvm::StringRef name, ArrayRef<Value> values) {
    return values.size() > 1 ? nodes.addN(name, values) : values.front();
  }
  Value scaled(llvm::StringRef name, Value value) { return scale == 1 ? value : nodes.multiply(name, value, scale); }

  /// The sums over all tasks.
  SmallVector<Value> sumOverTasks(ArrayRef<Value> values) {
    if (!exchange.hasPeers() || values.empty())
      return llvm::to_vector(values);
    return nodes.unflatten(exchange.collective("Reduce", nodes.flatten(values), spec), values);
  }

  Value multiply(llvm::StringRef name, Value x, Value y, Transposed transposed) {
    bool first = transposed == Transposed::First, second = transposed == Transposed::Second;
    auto xType = llvm::cast<RankedTensorType>(x.getType()), yType = llvm::cast<RankedTensorType>(y.getType());
    Type element = xType.getElementType();
    return nodes.get("MatMul", name, {x, y}, matrixType(xType.getDimSize(first), yType.getDimSize(!second), element),
                     {type("T", element), nodes.attribute("transpose_a", builder.getBoolAttr(first)),
                      nodes.attribute("transpose_b", builder.getBoolAttr(second))});
  }

  /// The sum of the local replicas' M_r Q.
  Value projectRows(Matrix &matrix) {
    auto shape = matrixType(matrix.rows, matrix.columns, narrow());
    SmallVector<Value> lefts;
    for (Operation *op : issue) {
      Value gradient = nodes.reshape("matrix", op->getOperand(matrix.member), shape.getShape());
      Value error = exchange.addState("error", DenseElementsAttr::get(shape, builder.getF32FloatAttr(0)));
      matrix.errors.push_back(error);
      matrix.wholes.push_back(nodes.binary("AddV2", "corrected", gradient, exchange.readState("error/Read", error)));
      lefts.push_back(multiply("left", matrix.wholes.back(), matrix.q, Transposed::None));
    }
    return sum("left/sum", lefts);
  }

  /// The scaled sum of the local replicas' M_r^T P; what P Q_r^T does not show of M_r is kept.
  Value projectColumns(Matrix &matrix) {
    SmallVector<Value> rights;
    for (auto [whole, error] : llvm::zip(matrix.wholes, matrix.errors)) {
      rights.push_back(multiply("right", whole, matrix.p, Transposed::First));
      Value seen = multiply("seen", matrix.p, rights.back(), Transposed::Second);
      exchange.keepState("error/Update", error, nodes.binary("Sub", "lost", whole, seen));
    }
    return scaled("right/mean", sum("right/sum", rights));
  }

  /// Gram-Schmidt in double precision, twice for each column (Giraud, Langou and Rozloznik 2005). Of a column that has
  /// nothing of its own, zeros are left.
  void orthogonalize(Matrix &matrix, Value left) {
    auto column = matrixType(matrix.rows, 1, wide());
    Operation *columns = nodes.make(
        "Split", "columns", {nodes.constant("columns/axis", 1), nodes.cast("wide", left, wide())},
        SmallVector<Type>(matrix.rank, column), {type("T", wide()), nodes.attribute("num_split", matrix.rank)});
    SmallVector<Value> done, lost;
    for (Value value : columns->getResults()) {
      Value before = norm(value);
      if (!done.empty()) {
        Value others = concatColumns("others", done);
        for (int round = 0; round < 2; ++round) {
          Value shares = multiply("shares", others, value, Transposed::First);
          value = nodes.binary("Sub", "rest", value, multiply("known", others, shares, Transposed::None));
        }
      }
      Value after = norm(value);
      Value least = nodes.multiply("least", before, 1e-5);
      auto flag = matrixType(1, 1, builder.getI1Type());
      // Not a number is not greater.
      Value isFull = nodes.get("Greater", "is_full", {after, least}, flag, type("T", wide()));
      Value unit = nodes.get("RealDiv", "unit", {value, after}, column, type("T", wide()));
      Value zero = nodes.scalar("zero", 0, value);
      done.push_back(nodes.get("SelectV2", "column", {isFull, unit, zero}, column, type("T", wide())));
      lost.push_back(nodes.reshape("lost", nodes.get("LogicalNot", "is_lost", isFull, flag), {1}));
    }
    matrix.p = nodes.cast("p", concatColumns("orthogonal", done), narrow());
    matrix.lost = nodes.concat("lost", lost);
  }

  /// [1, 1]
  Value norm(Value column) {
    Value square = multiply("square", column, column, Transposed::First);
    return nodes.get("Sqrt", "norm", square, square.getType(), type("T", wide()));
  }

  Value concatColumns(llvm::StringRef name, ArrayRef<Value> columns) {
    if (columns.size() == 1)
      return columns.front();
    auto first = llvm::cast<RankedTensorType>(columns.front().getType());
    auto count = static_cast<int64_t>(columns.size());
    SmallVector<Value> operands(columns);
    operands.push_back(nodes.constant((name + "/axis").str(), 1));
    return nodes.get("ConcatV2", name, operands, matrixType(first.getDimSize(0), count, wide()),
                     {nodes.attribute("N", count), type("T", wide()), type("Tidx", builder.getI32Type())});
  }

  /// Q for the next step. A column of zeros would stay one: it is drawn anew, in the order of the runtime. (P's is zero
  /// now, so the result does not see it.)
  void keep(ArrayRef<Value> rights) {
    if (matrices.empty())
      return;
    Type i64 = builder.getI64Type();
    auto number = RankedTensorType::get({}, i64);
    Value counter = exchange.addState("drawn", DenseElementsAttr::get(number, static_cast<int64_t>(drawn)));
    SmallVector<Value> lost;
    SmallVector<int64_t> widths;
    for (Matrix &matrix : matrices) {
      lost.push_back(matrix.lost);
      widths.append(matrix.rank, matrix.columns);
    }
    auto all = vectorType(static_cast<int64_t>(widths.size()), i64);
    Value zero = nodes.constant("none", DenseElementsAttr::get(number, int64_t(0)));
    Value counts = nodes.get("SelectV2", "redrawn",
                             {nodes.concat("all_lost", lost),
                              nodes.constant("widths", DenseElementsAttr::get(all, ArrayRef<int64_t>(widths))), zero},
                             all, type("T", i64));
    Value from = nodes.get(
        "Cumsum", "from", {counts, nodes.constant("from/axis", 0)}, all,
        {nodes.attribute("exclusive", builder.getBoolAttr(true)), type("T", i64), type("Tidx", builder.getI32Type())});
    Value before = exchange.readState("drawn/Read", counter);
    Value firsts = nodes.get("AddV2", "firsts", {from, before}, all, type("T", i64));
    int64_t begin = 0;
    for (auto [matrix, right] : llvm::zip(matrices, rights)) {
      Value drawnAnew = drawColumns(matrix, firsts, begin);
      Value next =
          nodes.get("SelectV2", "q/next", {matrix.lost, drawnAnew, right}, right.getType(), type("T", narrow()));
      exchange.keepState("q/Update", matrix.handle, next);
      begin += matrix.rank;
    }
    Value total = nodes.get("Sum", "total", {counts, nodes.constant("total/axes", ArrayRef<int32_t>{0})}, number,
                            {type("T", i64), type("Tidx", builder.getI32Type())});
    exchange.keepState("drawn/Update", counter, nodes.binary("AddV2", "drawn/next", before, total));
  }

  /// Columns of Q from the numbers on that `firsts` has for them from `begin` on.
  Value drawColumns(const Matrix &matrix, Value firsts, int64_t begin) {
    Type i64 = builder.getI64Type();
    auto shape = matrixType(matrix.columns, matrix.rank, i64);
    Value own = nodes.get("Slice", "first",
                          {firsts, nodes.constant("first/begin", ArrayRef<int32_t>{static_cast<int32_t>(begin)}),
                           nodes.constant("first/size", ArrayRef<int32_t>{static_cast<int32_t>(matrix.rank)})},
                          vectorType(matrix.rank, i64), {type("T", i64), type("Index", builder.getI32Type())});
    // One more: numbers count from 1.
    SmallVector<int64_t> rows;
    for (int64_t row = 0; row < matrix.columns; ++row)
      rows.push_back(row + 1);
    Value down =
        nodes.constant("rows", DenseElementsAttr::get(matrixType(matrix.columns, 1, i64), ArrayRef<int64_t>(rows)));
    return drawNumbers(nodes.get("AddV2", "numbers", {own, down}, shape, type("T", i64)));
  }

  Value drawNumbers(Value numbers) {
    // Not as unsigned integers, which not every target has: products and exclusive ors have the same bits.
    Type integer = builder.getI64Type();
    auto shape = llvm::cast<RankedTensorType>(numbers.getType());
    auto number = [&](llvm::StringRef name, uint64_t value) {
      auto scalar = RankedTensorType::get({}, integer);
      return nodes.constant(name, DenseElementsAttr::get(scalar, static_cast<int64_t>(value)));
    };
    auto apply = [&](llvm::StringRef op, llvm::StringRef name, Value x, Value y) {
      return nodes.get(op, name, {x, y}, shape, type("T", integer));
    };
    auto shift = [&](llvm::StringRef name, Value z, uint64_t bits) {
      Value shifted = apply("RightShift", name, z, number("bits", bits));
      return apply("BitwiseAnd", "unsigned", shifted, number("mask", ~uint64_t(0) >> bits));
    };
    auto mix = [&](Value z, uint64_t bits) { return apply("BitwiseXor", "mixed", z, shift("shifted", z, bits)); };
    Value z = apply("Mul", "stepped", numbers, number("step", kStep));
    z = apply("Mul", "scrambled", mix(z, 30), number("first_factor", kFirstFactor));
    z = apply("Mul", "scrambled", mix(z, 27), number("second_factor", kSecondFactor));
    Value high = shift("high", mix(z, 31), 64 - kDrawnBits);
    constexpr int64_t half = 1 << (kDrawnBits - 1);
    Value signedHigh = nodes.cast("signed", high, narrow());
    Value middle = nodes.scalar("half", half, signedHigh);
    Value centered = nodes.get("Sub", "centered", {signedHigh, middle}, signedHigh.getType(), type("T", narrow()));
    return nodes.multiply("drawn", centered, 1.0 / half);
  }

  Exchange &exchange;
  StockNodes &nodes;
  OpBuilder &builder;
  const Issue &issue;
  dist::Spec spec;
  double scale;
  SmallVector<Matrix> matrices;
  SmallVector<unsigned> plain;
  uint64_t drawn = 0;
};

} // namespace

SmallVector<Value> reduceLowRank(Exchange &exchange, const Issue &issue, dist::Reduction reduction, dist::Spec spec,
                                 dist::CompressionAttr compression) {
  return PowerSgd(exchange, issue, reduction == dist::Reduction::Mean, spec, compression.getMatrixRank()).run();
}

} // namespace distc

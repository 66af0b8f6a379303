//===- Aggregators.cpp - Rules that outvote wrong gradients ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The rules of runtime/cpu/aggregation.h, over gradients that are the rows of one
// tensor. Krum and the geometric median (Weiszfeld's iteration; Pillutla, Kakade
// and Harchaoui 2022) need the products of the rows alone, which are computed in
// double precision.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/exchange/Exchange.h"

using namespace mlir;

namespace distc {
namespace {

/// Of Weiszfeld's steps; each is about ten nodes of as many elements as there are gradients.
constexpr int kIterations = 40;
/// Of something that is not finite.
constexpr double kFar = 1e300;

class Rule {
public:
  Rule(StockNodes &nodes, int64_t rows, RankedTensorType result)
      : nodes(nodes), builder(nodes.getBuilder()), rows(rows), columns(result.getNumElements()), result(result) {}

  /// The mean of the sorted elements from `begin` to `end`; NaN counts as the largest number.
  Value meanOfSorted(Value stacked, int64_t begin, int64_t end) {
    Type element = result.getElementType();
    Value flat = nodes.reshape("rows", stacked, {rows, columns});
    Value turn = nodes.constant("perm", ArrayRef<int32_t>{1, 0});
    Value columnsOf = nodes.get("Transpose", "columns", {flat, turn}, matrix(columns, rows, element),
                                {type("T", element), type("Tperm", builder.getI32Type())});
    Value isNan =
        nodes.get("IsNan", "is_nan", columnsOf, matrix(columns, rows, builder.getI1Type()), type("T", element));
    Value infinite = nodes.scalar("infinity", std::numeric_limits<double>::infinity(), columnsOf);
    Value clean = select("clean", isNan, infinite, columnsOf);
    Value sorted = top("sorted", clean, rows, matrix(columns, rows, element)).first;
    // The largest come first.
    Value from = nodes.constant("kept/begin", ArrayRef<int32_t>{0, static_cast<int32_t>(rows - end)});
    Value size = nodes.constant("kept/size", ArrayRef<int32_t>{-1, static_cast<int32_t>(end - begin)});
    Value kept = nodes.get("Slice", "kept", {sorted, from, size}, matrix(columns, end - begin, element),
                           {type("T", element), type("Index", builder.getI32Type())});
    return nodes.reshape("aggregated", reduce("Mean", "mean", kept, 1, vector(columns, element)), result.getShape());
  }

  Value krum(Value stacked, int64_t f, int64_t m) {
    findProducts(stacked);
    Value distances = squaredDistances(number("far", kFar));
    // Of itself at distance 0, and of the nearest others.
    Value negative = nodes.get("Neg", "negative", distances, distances.getType(), type("T", wide()));
    Value nearest = top("nearest", negative, rows - f - 1, matrix(rows, rows - f - 1, wide())).first;
    Value scores = reduce("Sum", "scores", nearest, 1, vector(rows, wide()));
    Value best = top("best", scores, m, vector(m, wide())).second;
    Value chosen = nodes.get(
        "GatherV2", "chosen", {gradients, best, nodes.constant("axis", 0)}, matrix(m, columns, wide()),
        {type("Tparams", wide()), type("Tindices", builder.getI32Type()), type("Taxis", builder.getI32Type())});
    return finish(reduce("Mean", "mean", chosen, 0, vector(columns, wide())));
  }

  Value geometricMedian(Value stacked) {
    findProducts(stacked);
    Value one = number("one", 1), zero = number("zero", 0), two = number("two", 2);
    const Medoid medoid = findMedoid();
    Value weights = medoid.near;
    for (int step = 0; step < kIterations; ++step) {
      Value toMedian = nodes.get("MatMul", "to_median", {products, weights}, column(), type("T", wide()));
      Value norm = total(binary("Mul", "weighted", weights, toMedian));
      Value squares =
          binary("AddV2", "plus", binary("Sub", "minus", asColumn, binary("Mul", "twice", toMedian, two)), norm);
      Value distances =
          nodes.get("Sqrt", "distances", binary("Maximum", "positive", squares, zero), column(), type("T", wide()));
      Value scale = total(binary("Mul", "spread", weights, distances));
      Value smallest = binary("AddV2", "smallest", binary("Mul", "smoothing", scale, number("epsilon", 1e-6)),
                              number("tiny", 1 / kFar));
      Value inverse = binary("RealDiv", "inverse", one, binary("Maximum", "smoothed", distances, smallest), column());
      weights = normalize(select("inverses", finiteColumn, inverse, zero));
    }
    weights = nodes.get("SelectV2", "weights", {medoid.isMedian, medoid.alone, weights}, column(), type("T", wide()));
    Value sum = nodes.get("MatMul", "median", {weights, gradients}, matrix(1, columns, wide()),
                          {type("T", wide()), nodes.attribute("transpose_a", builder.getBoolAttr(true))});
    return finish(sum);
  }

private:
  /// The gradient with the smallest sum of distances to the others. Where unit vectors from it to them add up to less
  /// than the number of gradients in its place it is the median, to which the iteration comes late; else that begins
  /// near it. As on processors, see runtime/cpu/aggregation.cpp.
  struct Medoid {
    Value isMedian, alone; // one truth value; weights of its place alone
    Value near;            // weights
  };
  Medoid findMedoid() {
    RankedTensorType row = matrix(1, rows, wide()), one = matrix(1, 1, wide());
    Value zero = number("nothing", 0), squares = squaredDistances(zero);
    Value distances = nodes.get("Sqrt", "distances", squares, squares.getType(), type("T", wide()));
    Value sums = select("sums", finiteColumn,
                        nodes.reshape("column", reduce("Sum", "sum", distances, 1, vector(rows, wide())), {rows, 1}),
                        number("far", kFar));
    Value negative = nodes.get("Neg", "negative", nodes.reshape("row", sums, {1, rows}), row, type("T", wide()));
    Value medoid = nodes.reshape("medoid", top("nearest", negative, 1, matrix(1, 1, wide())).second, {1});
    Value from = nodes.get(
        "GatherV2", "from", {distances, medoid, nodes.constant("axis", 0)}, row,
        {type("Tparams", wide()), type("Tindices", builder.getI32Type()), type("Taxis", builder.getI32Type())});
    Value isApart =
        nodes.get("Greater", "is_apart", {from, zero}, matrix(1, rows, builder.getI1Type()), type("T", wide()));
    Value inverse = select("inverse", isApart,
                           binary("RealDiv", "reciprocal", number("one", 1),
                                  binary("Maximum", "smallest", from, number("tiny", 1 / kFar)), row),
                           zero);
    // |sum of (x_i - x) / d_i|^2 with (x_i - x)(x_j - x) = (d_i^2 + d_j^2 - d_ij^2) / 2.
    auto product = [&](Value x, Value y) {
      return nodes.get("MatMul", "product", {x, y}, one,
                       {type("T", wide()), nodes.attribute("transpose_b", builder.getBoolAttr(true))});
    };
    Value ones = select("ones", isApart, number("one", 1), zero);
    Value across = nodes.get("MatMul", "across", {inverse, squares}, row, type("T", wide()));
    Value pull = binary("Sub", "pull", binary("Mul", "around", product(inverse, ones), product(from, ones)),
                        binary("Mul", "half", product(across, inverse), number("half", 0.5)));
    Value isHere =
        nodes.get("LogicalAnd", "is_here",
                  {finiteRow, nodes.get("LogicalNot", "not_apart", isApart, isApart.getType())}, isApart.getType());
    Value here = select("here", isHere, number("one", 1), zero);
    Value count = product(here, here);
    Value most = binary("Mul", "most", binary("Mul", "count", count, count), number("margin", 1 - 1e-9));
    Value isMedian = nodes.get("Less", "is_median", {pull, most}, matrix(1, 1, builder.getI1Type()), type("T", wide()));
    Value own = normalize(nodes.reshape("own", here, {rows, 1}));
    Value largest = binary("Maximum", "largest",
                           nodes.reshape("closest", reduce("Max", "closest", inverse, 1, vector(1, wide())), {1, 1}),
                           number("tiny", 1 / kFar));
    Value near = select("near", isHere,
                        nodes.get("BroadcastTo", "here_weight",
                                  {largest, nodes.constant("sizes", ArrayRef<int32_t>{1, static_cast<int32_t>(rows)})},
                                  row, {type("T", wide()), type("Tidx", builder.getI32Type())}),
                        inverse);
    return {isMedian, own, normalize(nodes.reshape("near", near, {rows, 1}))};
  }

  NamedAttribute type(llvm::StringRef name, Type value) { return nodes.attribute(name, value); }
  Type wide() { return builder.getF64Type(); }
  RankedTensorType matrix(int64_t m, int64_t n, Type element) { return RankedTensorType::get({m, n}, element); }
  RankedTensorType vector(int64_t n, Type element) { return RankedTensorType::get({n}, element); }
  RankedTensorType column() { return matrix(rows, 1, wide()); }
  Value number(llvm::StringRef name, double value) {
    return nodes.constant(name, DenseElementsAttr::get(RankedTensorType::get({}, builder.getF64Type()), value));
  }
  Value binary(llvm::StringRef op, llvm::StringRef name, Value x, Value y, Type of = {}) {
    return nodes.get(op, name, {x, y}, of ? of : x.getType(), type("T", getElementTypeOrSelf(x.getType())));
  }
  Value select(llvm::StringRef name, Value condition, Value yes, Value no) {
    auto shape = llvm::cast<RankedTensorType>(condition.getType());
    Type element = getElementTypeOrSelf(yes.getType());
    return nodes.get("SelectV2", name, {condition, yes, no}, shape.clone(element), type("T", element));
  }
  Value reduce(llvm::StringRef op, llvm::StringRef name, Value value, int32_t axis, Type of) {
    Value axes = nodes.constant((name + "/axes").str(), ArrayRef<int32_t>{axis});
    return nodes.get(op, name, {value, axes}, of,
                     {type("T", getElementTypeOrSelf(value.getType())), type("Tidx", builder.getI32Type())});
  }
  /// The sum of a column, a matrix of one element.
  Value total(Value value) {
    Value axes = nodes.constant("total/axes", ArrayRef<int32_t>{0});
    return nodes.get("Sum", "total", {value, axes}, matrix(1, 1, wide()),
                     {type("T", wide()), type("Tidx", builder.getI32Type()),
                      nodes.attribute("keep_dims", builder.getBoolAttr(true))});
  }
  Value normalize(Value value) { return binary("RealDiv", "weights", value, total(value)); }
  /// The `count` largest of the last axis, and where they are.
  std::pair<Value, Value> top(llvm::StringRef name, Value value, int64_t count, RankedTensorType of) {
    Value k = nodes.constant((name + "/k").str(), static_cast<int32_t>(count));
    Operation *op = nodes.make("TopKV2", name, {value, k}, {of, of.clone(builder.getI32Type())},
                               type("T", getElementTypeOrSelf(value.getType())));
    return {op->getResult(0), op->getResult(1)};
  }

  /// Rows that are not finite are zero from here on, and known by `finite`.
  void findProducts(Value stacked) {
    Value flat = nodes.cast("wide", nodes.reshape("rows", stacked, {rows, columns}), wide());
    Value isFinite =
        nodes.get("IsFinite", "is_finite", flat, matrix(rows, columns, builder.getI1Type()), type("T", wide()));
    Value axes = nodes.constant("finite/axes", ArrayRef<int32_t>{1});
    finiteColumn =
        nodes.get("All", "finite", {isFinite, axes}, matrix(rows, 1, builder.getI1Type()),
                  {type("Tidx", builder.getI32Type()), nodes.attribute("keep_dims", builder.getBoolAttr(true))});
    finiteRow = nodes.reshape("finite_row", finiteColumn, {1, rows});
    gradients = nodes.get("SelectV2", "gradients", {finiteColumn, flat, number("nothing", 0)}, flat.getType(),
                          type("T", wide()));
    products = nodes.get("MatMul", "products", {gradients, gradients}, matrix(rows, rows, wide()),
                         {type("T", wide()), nodes.attribute("transpose_b", builder.getBoolAttr(true))});
    Value diagonal = nodes.get("DiagPart", "norms_squared", products, vector(rows, wide()), type("T", wide()));
    asColumn = nodes.reshape("column", diagonal, {rows, 1});
    asRow = nodes.reshape("row", diagonal, {1, rows});
  }

  /// Of each two gradients; `other` where one of them is not finite.
  Value squaredDistances(Value other) {
    Value twice = binary("Mul", "twice", products, number("two", 2));
    Value norms = binary("AddV2", "norms", asColumn, asRow, twice.getType());
    Value squares = binary("Sub", "squares", norms, twice);
    Value positive = binary("Maximum", "positive", squares, number("zero", 0));
    Value known = nodes.get("LogicalAnd", "known", {finiteColumn, finiteRow}, matrix(rows, rows, builder.getI1Type()));
    return select("distances", known, positive, other);
  }

  Value finish(Value value) {
    Value shaped = nodes.reshape("aggregated", value, result.getShape());
    return nodes.cast("result", shaped, result.getElementType());
  }

  StockNodes &nodes;
  OpBuilder &builder;
  int64_t rows, columns;
  RankedTensorType result;
  Value gradients, products, asColumn, asRow, finiteColumn, finiteRow;
};

} // namespace

FailureOr<Value> aggregate(Exchange &exchange, Operation *op, dist::AggregatorAttr rule, Value stacked, int64_t count,
                           Type result) {
  auto type = llvm::dyn_cast<RankedTensorType>(result);
  if (!type || !type.hasStaticShape())
    return op->emitOpError() << "has an aggregator for a gradient of unknown shape; use mean or sum";
  Rule maker(exchange.nodes, count, type);
  int64_t f = rule.getF();
  bool isKrum = rule.getKind() == dist::AggregatorKind::Krum || rule.getKind() == dist::AggregatorKind::MultiKrum;
  if ((rule.getKind() == dist::AggregatorKind::TrimmedMean && count <= 2 * f) || (isKrum && count < f + 3))
    return op->emitOpError() << "has too few gradients, " << count << ", for "
                             << dist::stringifyAggregatorKind(rule.getKind()) << " with f = " << f;
  switch (rule.getKind()) {
  case dist::AggregatorKind::Median:
    return maker.meanOfSorted(stacked, (count - 1) / 2, count / 2 + 1);
  case dist::AggregatorKind::TrimmedMean:
    return maker.meanOfSorted(stacked, f, count - f);
  case dist::AggregatorKind::Krum:
    return maker.krum(stacked, f, 1);
  case dist::AggregatorKind::MultiKrum:
    return maker.krum(stacked, f, rule.getM() > 0 ? rule.getM() : count - f);
  case dist::AggregatorKind::GeometricMedian:
    return maker.geometricMedian(stacked);
  }
  return failure();
}

// A sum over the batch is as many times what the rule gives.
FailureOr<SmallVector<Value>> aggregateBucket(Exchange &exchange, dist::AllReduceOp reduce, ArrayRef<Value> rows) {
  StockNodes &nodes = exchange.nodes;
  Value stacked = nodes.pack("stacked", rows);
  if (exchange.hasPeers())
    stacked = exchange.collective("Gather", stacked, reduce.getSpec());
  FailureOr<Value> value =
      aggregate(exchange, reduce, reduce.getAggregatorAttr(), stacked, exchange.replicas, rows.front().getType());
  if (failed(value))
    return failure();
  if (reduce.getReduction() == dist::Reduction::Sum)
    value = nodes.multiply("sum", *value, static_cast<double>(exchange.replicas));
  return nodes.unflatten(*value, SmallVector<Value>(reduce.getGradients()));
}

} // namespace distc

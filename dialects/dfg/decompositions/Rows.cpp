//===- Rows.cpp - Segments, sparse tensors, random choices ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/Generators.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// How many segments there are: what `operand` says, else the last id tells, where it is known.
Value getSegmentCount(Operation *op, GraphBuilder &g, unsigned operand, Value ids) {
  if (op->getNumOperands() > operand)
    return op->getOperand(operand);
  std::optional<SmallVector<int64_t>> known = g.shapes.getConstants(ids);
  if (!known)
    return (void)g.fail("the number of segments depends on the data; say it by the operation's form with num_segments, "
                        "or unsorted_segment_*"),
           Value();
  return g.integer(known->empty() ? 0 : known->back() + 1);
}

/// Rows of a segment, as a column of `rank` axes, in the elements of `like`; at least 1.
Value countRows(GraphBuilder &g, Value ids, Value count, Value like, int64_t rank) {
  Value ones = g.cast(g.make<OnesLikeOp>(ids), g.elementOf(like));
  Value rows = g.maximum(g.segmentSum(ones, ids, count), g.scalar(g.elementOf(like), 1));
  for (int64_t axis = 1; axis < rank; ++axis)
    rows = g.expandDims(rows, axis);
  return rows;
}

} // namespace

Result invertPermutation(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  Type element = g.elementOf(x);
  // What is known stays so: the axes of a transposition.
  if (std::optional<SmallVector<int64_t>> known = g.shapes.getConstants(x)) {
    SmallVector<int64_t> inverse(known->size());
    for (auto [i, to] : llvm::enumerate(*known))
      if (to < 0 || to >= static_cast<int64_t>(inverse.size()))
        return g.fail("its operand is no permutation");
      else
        inverse[to] = i;
    return one(g, g.integers(inverse, element.isInteger(64)));
  }
  return one(g, g.segmentSum(g.positions(x, 0, element), x, g.sizeOf(x, 0, g.builder.getI32Type())));
}

/// Operands: data, ids in order, how many. As TensorFlow's: what has no rows is 0, of a product 1.
Result segments(Operation *op, GraphBuilder &g) {
  Value data = op->getOperand(0), ids = op->getOperand(1);
  FailureOr<Dims> shape = g.getShape(data);
  Value count = getSegmentCount(op, g, 2, ids);
  if (failed(shape) || !count)
    return failure();
  int64_t rank = shape->size();
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case<SegmentSumOp, SegmentSumV2Op, SegmentMeanOp>([&](auto) { return g.segmentSum(data, ids, count); })
          .Case<SegmentProdOp, SegmentProdV2Op>([&](auto) { return g.make<UnsortedSegmentProdOp>({data, ids, count}); })
          .Case<SegmentMaxOp, SegmentMaxV2Op>([&](auto) { return g.make<UnsortedSegmentMaxOp>({data, ids, count}); })
          .Default([&](Operation *) { return g.make<UnsortedSegmentMinOp>({data, ids, count}); });
  if (llvm::isa<SegmentMeanOp>(op))
    result = g.div(result, countRows(g, ids, count, data, rank));
  if (llvm::isa<SegmentMaxOp, SegmentMinOp>(op)) {
    Value rows = g.segmentSum(g.make<OnesLikeOp>(ids), ids, count);
    for (int64_t axis = 1; axis < rank; ++axis)
      rows = g.expandDims(rows, axis);
    result = g.select(g.less(g.scalar(g.elementOf(ids), 0), rows), result, g.scalar(g.elementOf(data), 0));
  }
  return one(g, result);
}

/// Operands: data, the rows of it that are taken, the segment of each, how many segments.
Result sparseSegments(Operation *op, GraphBuilder &g) {
  Value data = op->getOperand(0), ids = op->getOperand(2);
  FailureOr<Dims> shape = g.getShape(data);
  Value count = getSegmentCount(op, g, 3, ids);
  if (failed(shape) || !count)
    return failure();
  Value sum = g.segmentSum(g.gather(data, op->getOperand(1), 0), ids, count);
  if (llvm::isa<SparseSegmentSumOp, SparseSegmentSumWithNumSegmentsOp>(op))
    return one(g, sum);
  Value rows = countRows(g, ids, count, data, shape->size());
  if (llvm::isa<SparseSegmentSqrtNOp, SparseSegmentSqrtNWithNumSegmentsOp>(op))
    rows = g.make<SqrtOp>(rows);
  return one(g, g.div(sum, rows));
}

/// The gradient of each row that was taken. Operands: that of the segments, the rows, their segments.
static Value spreadSegments(Operation *op, GraphBuilder &g) {
  Value dy = op->getOperand(0), ids = op->getOperand(2);
  FailureOr<Dims> shape = g.getShape(dy);
  if (failed(shape))
    return {};
  if (!llvm::isa<SparseSegmentSumGradOp, SparseSegmentSumGradV2Op>(op)) {
    Value rows = countRows(g, ids, g.sizeOf(dy, 0, g.builder.getI32Type()), dy, shape->size());
    dy = g.div(dy, llvm::isa<SparseSegmentSqrtNGradOp, SparseSegmentSqrtNGradV2Op>(op) ? g.make<SqrtOp>(rows) : rows);
  }
  return g.gather(dy, ids, 0);
}

/// Operands: the gradient, the rows that were taken, their segments, how many rows there are.
Result sparseSegmentsGrad(Operation *op, GraphBuilder &g) {
  return one(g, g.segmentSum(spreadSegments(op, g), op->getOperand(1), op->getOperand(3)));
}

/// The same operands. Rows that were taken more than once are added.
Result sparseSegmentsGradV2(Operation *op, GraphBuilder &g) {
  Value indices = op->getOperand(1);
  FailureOr<Dims> shape = g.getShape(indices);
  if (failed(shape) || shape->size() != 1)
    return failure();
  if (!shape->front().isKnown() || shape->front().isBound())
    return g.fail("how many rows were taken depends on the data, so that they are not put in order");
  Type i32 = g.builder.getI32Type(), index = g.elementOf(indices);
  auto sorted = g.makeAll<TopKV2Op>({g.neg(indices), g.sizeOf(indices, 0, i32)}, {index, i32}, g.flag("sorted", true));
  auto distinct = g.makeAll<UniqueOp>(g.gather(indices, sorted[1], 0), {index, i32});
  Value rows = g.segmentSum(g.gather(spreadSegments(op, g), sorted[1], 0), distinct[1], g.sizeOf(distinct[0], 0, i32));
  if (g.failed())
    return failure();
  return SmallVector<Value>{rows, distinct[0]};
}

// ---- Sparse tensors ----------------------------------------------------------------------------------

/// Operands: indices, the shape, values, the value elsewhere.
Result sparseToDense(Operation *op, GraphBuilder &g) {
  Value indices = op->getOperand(0), shape = op->getOperand(1), values = op->getOperand(2),
        otherwise = op->getOperand(3);
  FailureOr<Dims> at = g.getShape(indices), of = g.getShape(values), rank = g.getShape(shape);
  if (failed(at) || failed(of) || failed(rank) || rank->size() != 1 || !(*rank)[0].isConstant())
    return g.fail("the number of axes of the result is not known");
  Dim count = at->empty() ? Dim(1) : (*at)[0];
  if (at->size() < 2)
    indices = g.reshape(indices, {count, Dim(1)});
  if (of->empty())
    values = g.broadcastTo(values, g.sizes({count}, indices));
  Value base = g.make<FillOp>({shape, otherwise}, {}, g.elementOf(otherwise));
  return one(g, g.make<TensorScatterUpdateOp>({base, indices, values}));
}

/// Operands: indices, values and shape of the sparse matrix, the dense one.
Result sparseTensorDenseMatMul(Operation *op, GraphBuilder &g) {
  Value indices = op->getOperand(0), values = op->getOperand(1), dense = op->getOperand(3);
  FailureOr<Dims> at = g.getShape(indices);
  if (failed(at) || at->size() != 2)
    return failure();
  const int64_t row = getFlag(op, "adjoint_a") ? 1 : 0;
  auto column = [&](int64_t number) { return g.reshape(g.slice(indices, 1, number, 1), {(*at)[0]}); };
  if (getFlag(op, "adjoint_b"))
    dense = g.transpose(dense, {1, 0});
  Value terms = g.mul(g.gather(dense, column(1 - row), 0), g.expandDims(values, 1));
  Value count = g.make<StridedSliceOp>({op->getOperand(2), g.integers({row}), g.integers({row + 1}), g.integers({1})},
                                       g.attribute("shrink_axis_mask", g.builder.getI64IntegerAttr(1)));
  return one(g, g.segmentSum(terms, column(row), count));
}

// ---- Random choices -------------------------------------------------------------------------------------

namespace {

/// Uniform numbers from [0, 1) of the generator that the node has, or of its operand `seed`. `reserved`: kReservedAttr.
Value drawUniform(Operation *op, GraphBuilder &g, Value shape, Type element, int seed, int64_t reserved = 0) {
  // Of version 2 a key, a counter and an algorithm.
  if (llvm::isa<StatelessRandomGammaV3Op>(op))
    return g.make<StatelessRandomUniformV2Op>({shape, op->getOperand(1), op->getOperand(2), op->getOperand(3)}, {},
                                              element);
  if (seed >= 0)
    return g.make<StatelessRandomUniformOp>({shape, op->getOperand(seed)}, {}, element);
  SmallVector<NamedAttribute> attributes = {g.attribute("seed", op->getAttr("seed")),
                                            g.attribute("seed2", op->getAttr("seed2"))};
  if (reserved)
    attributes.push_back(g.attribute(kReservedAttr, g.builder.getI64IntegerAttr(reserved)));
  return g.make<RandomUniformOp>(shape, attributes, element);
}

} // namespace

/// Operands: logits, how many for each row; a seed. As multinomial_op.cc does on one thread: numbers of [0, 1) in
/// float64, one after the other, looked up in the rows' cumulative sums of exp(logit - maximum), logits that are not
/// finite left out.
Result multinomial(Operation *op, GraphBuilder &g) {
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  FailureOr<int64_t> count = g.getConstant(op->getOperand(1));
  if (failed(shape) || failed(count) || shape->size() != 2)
    return failure();
  if (*count < 0 || (*shape)[1] == Dim(0))
    return g.fail("it draws from no classes, or a negative number of samples");
  Type f64 = g.builder.getF64Type();
  Value logits = g.cast(op->getOperand(0), f64);
  Value finite = g.make<IsFiniteOp>(logits, {}, g.builder.getI1Type());
  Value least = g.scalar(f64, std::numeric_limits<double>::lowest()), zero = g.scalar(f64, 0);
  Value largest = g.reduce(MaxOp::getOperationName(), g.select(finite, logits, least), {1}, /*keepDims=*/true);
  Value weights = g.select(finite, g.exp(g.sub(logits, largest)), zero);
  Value sums = g.make<CumsumOp>({weights, g.integer(1)});
  Value total = g.make<StridedSliceOp>({sums, g.integers({0, -1}), g.integers({0, 0}), g.integers({1, 1})},
                                       {g.attribute("begin_mask", g.builder.getI64IntegerAttr(1)),
                                        g.attribute("end_mask", g.builder.getI64IntegerAttr(3))});
  // It reserves what whole groups of four samples might take.
  const int64_t reserved = llvm::alignTo(*count, 4) * 2 * 256;
  Value drawn =
      drawUniform(op, g, g.sizes({(*shape)[0], Dim(*count)}, logits), f64, op->getNumOperands() > 2 ? 2 : -1, reserved);
  Value wanted = g.mul(drawn, total);
  Value below = g.lessEqual(g.expandDims(sums, 1), g.expandDims(wanted, 2));
  return one(g, g.sum(g.cast(below, g.elementOf(op->getResult(0))), {2}));
}

Result randomShuffle(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return failure();
  if (shape->empty())
    return one(g, g.make<IdentityOp>(x));
  Value order =
      g.make<RandomPermutationOp>(g.sizeOf(x, 0, g.builder.getI32Type()), {g.attribute("seed", op->getAttr("seed")),
                                                                           g.attribute("seed2", op->getAttr("seed2"))});
  return one(g, g.gather(x, order, 0));
}

/// The shape that is asked for, in front of the parameter's.
static Value drawFor(Operation *op, GraphBuilder &g, Value parameter, int seed) {
  Type index = g.elementOf(op->getOperand(0));
  FailureOr<Dims> own = g.getShape(parameter);
  if (failed(own))
    return {};
  Value shape = op->getOperand(0);
  // A stateless draw names the whole shape.
  if (seed < 0 && !own->empty())
    shape = g.concat({shape, g.make<ShapeOp>(parameter, {}, index)}, 0);
  return drawUniform(op, g, shape, g.builder.getF64Type(), seed);
}

/// Operands: shape, alpha; or shape, seed, alpha; or shape, key, counter, algorithm, alpha.
Result randomGamma(Operation *op, GraphBuilder &g) {
  const int seed = op->getNumOperands() > 2 ? 1 : -1;
  Value alpha = op->getOperand(op->getNumOperands() - 1);
  Value drawn = g.make<DrawGammaOp>({g.cast(alpha, g.builder.getF64Type()), drawFor(op, g, alpha, seed)});
  return one(g, g.cast(drawn, g.elementOf(op->getResult(0))));
}

/// Operands: shape, seed, how many tries, how probable each is.
Result randomBinomial(Operation *op, GraphBuilder &g) {
  Type f64 = g.builder.getF64Type();
  Value drawn = drawUniform(op, g, op->getOperand(0), f64, 1);
  Value counted = g.make<DrawBinomialOp>({g.cast(op->getOperand(2), f64), g.cast(op->getOperand(3), f64), drawn});
  return one(g, g.cast(counted, g.elementOf(op->getResult(0))));
}

/// Operands: shape, means, deviations, least and largest; or shape, seed, these. By the inverse of the distribution
/// function, in the half where that is exact.
Result truncatedNormalBetween(Operation *op, GraphBuilder &g) {
  const bool isStateless = llvm::isa<StatelessParameterizedTruncatedNormalOp>(op);
  Type f64 = g.builder.getF64Type();
  Value drawn = drawUniform(op, g, op->getOperand(0), f64, isStateless ? 1 : -1);
  FailureOr<Dims> shape = g.getShape(drawn);
  if (failed(shape))
    return failure();
  const int64_t rank = shape->size();
  SmallVector<Value> parameters;
  for (Value parameter : op->getOperands().drop_front(isStateless ? 2 : 1)) {
    FailureOr<Dims> own = g.getShape(parameter);
    if (failed(own))
      return failure();
    parameter = g.cast(parameter, f64);
    // Those of a vector are of a row each.
    if (!isStateless && own->size() == 1)
      for (int64_t axis = 1; axis < rank; ++axis)
        parameter = g.expandDims(parameter, axis);
    parameters.push_back(parameter);
  }
  Value mean = parameters[0], deviation = parameters[1];
  Value ends[] = {g.div(g.sub(parameters[2], mean), deviation), g.div(g.sub(parameters[3], mean), deviation)};
  Value low = g.minimum(ends[0], ends[1]), high = g.maximum(ends[0], ends[1]);
  // Above the mean: the mirror image, below it.
  Value zero = g.scalar(f64, 0), isAbove = g.less(zero, low);
  Value from = g.select(isAbove, g.neg(high), low), to = g.select(isAbove, g.neg(low), high);
  Value half = g.scalar(f64, 0.5), root = g.scalar(f64, -std::sqrt(0.5));
  auto below = [&](Value x) { return g.mul(half, g.make<ErfcOp>(g.mul(x, root))); };
  Value inside = g.add(drawn, g.scalar(f64, 0x1p-54));
  Value share = g.add(below(from), g.mul(inside, g.sub(below(to), below(from))));
  Value number = g.minimum(g.maximum(g.make<NdtriOp>(share), from), to);
  number = g.select(isAbove, g.neg(number), number);
  return one(g, g.cast(g.add(mean, g.mul(deviation, number)), g.elementOf(op->getResult(0))));
}

/// A key and a counter of a seed, and the algorithm, which is Philox; or that alone.
Result keyCounterAlgorithm(Operation *op, GraphBuilder &g) {
  Value philox = g.integer(1);
  if (op->getNumOperands() == 0)
    return one(g, philox);
  Type words = g.elementOf(op->getResult(0));
  SmallVector<Value> made = g.makeAll<StatelessRandomGetKeyCounterOp>(op->getOperand(0), {words, words});
  if (g.failed())
    return failure();
  made.push_back(philox);
  return made;
}

/// Operands: rows, key, counter, algorithm.
Result statelessShuffle(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return failure();
  if (shape->empty() || shape->front() == Dim(0) || shape->front() == Dim(1))
    return one(g, g.make<IdentityOp>(x));
  Value words = g.make<StatelessRandomUniformFullIntV2Op>(
      {g.sizes({shape->front()}, x), op->getOperand(1), op->getOperand(2), op->getOperand(3)}, {},
      g.builder.getI32Type());
  return one(g, g.gather(x, g.make<ShuffledRowsOp>(words), 0));
}

/// Operands: true classes.
Result allCandidates(Operation *op, GraphBuilder &g) {
  Type f32 = g.builder.getF32Type(), i64 = g.builder.getI64Type();
  Value all = g.cast(g.make<RangeOp>({g.integer(0), g.integer(getNumber(op, "num_sampled")), g.integer(1)}), i64);
  auto ones = [&](Value like) { return g.make<OnesLikeOp>(g.cast(like, f32)); };
  SmallVector<Value> results = {all, ones(op->getOperand(0)), ones(all)};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: shape, rate; or shape, seed, rate.
Result randomPoisson(Operation *op, GraphBuilder &g) {
  const int seed = op->getNumOperands() > 2 ? 1 : -1;
  Value rate = op->getOperand(op->getNumOperands() - 1);
  Value drawn = g.make<DrawPoissonOp>({g.cast(rate, g.builder.getF64Type()), drawFor(op, g, rate, seed)});
  return one(g, g.cast(drawn, g.elementOf(op->getResult(0))));
}

} // namespace distc::dfg::decompositions

//===- Matrices.cpp - Diagonals, bands, counting --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// The last two axes; diagonal `k` is that of elements [i, i + k].
struct Matrices {
  GraphBuilder &g;
  Type index;

  explicit Matrices(GraphBuilder &g) : g(g), index(g.builder.getI32Type()) {}

  Value rows(Value of, int64_t rank, Type element) { return g.expandDims(g.positions(of, rank - 2, element), 1); }
  Value columns(Value of, int64_t rank, Type element) { return g.positions(of, rank - 1, element); }

  static int64_t lengthOf(int64_t m, int64_t n, int64_t k) {
    return std::min(m + std::min<int64_t>(k, 0), n - std::max<int64_t>(k, 0));
  }

  /// Diagonal `k` of matrices of m rows and n columns.
  Value take(Value x, int64_t m, int64_t n, int64_t k) {
    FailureOr<Dims> shape = g.getShape(x);
    int64_t length = lengthOf(m, n, k);
    const bool isEmpty = length == 0 && k == 0; // of a matrix without elements
    if (failed(shape) || (length <= 0 && !isEmpty))
      return (void)g.fail("diagonal " + Twine(k) + " is outside of its matrix"), Value();
    int64_t rank = shape->size();
    Value square =
        g.slice(g.slice(x, rank - 2, std::max<int64_t>(-k, 0), length), rank - 1, std::max<int64_t>(k, 0), length);
    // A row more of zeros, and rows of one element more: the diagonal is a column.
    Dims flat(shape->begin(), shape->end() - 2), skewed = flat, taken = flat;
    flat.push_back(length * length);
    skewed.append({Dim(length), Dim(length + 1)});
    taken.push_back(length);
    Value padded = g.padAxis(g.reshape(square, flat), rank - 2, 0, length);
    return g.reshape(g.slice(g.reshape(padded, skewed), rank - 1, 0, 1), taken);
  }

  /// `otherwise`, a scalar or matrices of m rows and n columns, with diagonal `k` set.
  Value put(Value diagonal, int64_t m, int64_t n, int64_t k, Value otherwise) {
    FailureOr<Dims> shape = g.getShape(diagonal);
    if (failed(shape))
      return {};
    int64_t last = static_cast<int64_t>(shape->size()) - 1, before = std::max<int64_t>(-k, 0);
    Value spread = g.expandDims(g.padAxis(diagonal, last, before, m - before - lengthOf(m, n, k)), last + 1);
    Value row = g.expandDims(g.make<RangeOp>({g.integer(0), g.integer(m), g.integer(1)}), 1);
    Value column = g.make<RangeOp>({g.integer(0), g.integer(n), g.integer(1)});
    return g.select(g.equal(g.sub(column, row), g.integer(k)), spread, otherwise);
  }
};

/// Which diagonals an operation names, and on which side shorter ones are padded.
struct Band {
  int64_t lower = 0, upper = 0;
  bool leftAbove = true, leftBelow = true;

  static FailureOr<Band> of(Operation *op, GraphBuilder &g, int operand) {
    Band band;
    if (operand >= static_cast<int>(op->getNumOperands()))
      return band;
    FailureOr<SmallVector<int64_t>> k = g.getConstants(op->getOperand(operand));
    if (failed(k) || k->empty())
      return failure();
    band.lower = k->front();
    band.upper = k->back();
    if (StringRef align = getText(op, "align"); !align.empty()) {
      band.leftAbove = align.starts_with("LEFT");
      band.leftBelow = align.ends_with("LEFT");
    }
    return band;
  }
  /// Where the elements of diagonal k, `length` of them, begin in a row of `most`.
  int64_t getOffset(int64_t k, int64_t length, int64_t most) const {
    bool left = (k >= 0 && leftAbove) || (k <= 0 && leftBelow);
    return left ? 0 : most - length;
  }
};

/// Sets the diagonals of a band, each a row of `diagonals` unless there is one.
Value putBand(Matrices &matrices, GraphBuilder &g, Value diagonals, const Band &band, int64_t m, int64_t n,
              Value otherwise) {
  FailureOr<Dims> shape = g.getShape(diagonals);
  if (failed(shape) || shape->empty() || !shape->back().isConstant())
    return (void)g.fail("the length of a diagonal is not known"), Value();
  int64_t rank = shape->size(), most = shape->back().getConstant();
  if (band.lower == band.upper)
    return matrices.put(diagonals, m, n, band.lower, otherwise);
  Value x = otherwise;
  for (int64_t k = band.upper; k >= band.lower; --k) {
    int64_t length = Matrices::lengthOf(m, n, k);
    if (length <= 0)
      return (void)g.fail("diagonal " + Twine(k) + " is outside of its matrix"), Value();
    Value row = g.slice(diagonals, rank - 2, band.upper - k, 1);
    row = g.slice(row, rank - 1, band.getOffset(k, length, most), length);
    Dims sizes(shape->begin(), shape->end() - 2);
    sizes.push_back(length);
    x = matrices.put(g.reshape(row, sizes), m, n, k, x);
  }
  return x;
}

FailureOr<std::pair<int64_t, int64_t>> getMatrixSize(GraphBuilder &g, Value x) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || shape->size() < 2 || !shape->back().isConstant() || !(*shape)[shape->size() - 2].isConstant())
    return g.fail("the size of its matrices is not known");
  return std::pair((*shape)[shape->size() - 2].getConstant(), shape->back().getConstant());
}

} // namespace

Result matrixBandPart(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || shape->size() < 2)
    return failure();
  Matrices matrices(g);
  int64_t rank = shape->size();
  Type wide = g.elementOf(op->getOperand(1));
  Value row = matrices.rows(x, rank, wide), column = matrices.columns(x, rank, wide);
  Value inside;
  for (unsigned side : {1, 2}) {
    Value distance = side == 1 ? g.sub(row, column) : g.sub(column, row), most = op->getOperand(side);
    auto constant = g.shapes.getConstant(most);
    if (constant && *constant < 0)
      continue;
    Value near = g.lessEqual(distance, most);
    if (!constant)
      near = g.either(near, g.less(most, g.scalar(wide, 0)));
    inside = inside ? g.both(inside, near) : near;
  }
  if (!inside)
    return one(g, g.make<IdentityOp>(x));
  return one(g, g.select(inside, x, g.scalar(g.elementOf(x), 0)));
}

Result diag(Operation *op, GraphBuilder &g) {
  FailureOr<SmallVector<int64_t>> shape = g.getStaticShape(op->getOperand(0));
  if (failed(shape))
    return failure();
  int64_t count = llvm::product_of(*shape);
  Dims sizes(shape->begin(), shape->end());
  llvm::append_range(sizes, Dims(sizes));
  Value flat = g.reshape(op->getOperand(0), {Dim(count)});
  return one(g, g.reshape(Matrices(g).put(flat, count, count, 0, g.scalar(g.elementOf(flat), 0)), sizes));
}

Result diagPart(Operation *op, GraphBuilder &g) {
  FailureOr<SmallVector<int64_t>> shape = g.getStaticShape(op->getOperand(0));
  if (failed(shape) || shape->size() % 2)
    return failure();
  Dims sizes(shape->begin(), shape->begin() + shape->size() / 2);
  int64_t count = 1;
  for (Dim size : sizes)
    count *= size.getConstant();
  Value square = g.reshape(op->getOperand(0), {Dim(count), Dim(count)});
  return one(g, g.reshape(Matrices(g).take(square, count, count, 0), sizes));
}

/// Operands: diagonals; k, rows, columns, padding.
Result matrixDiag(Operation *op, GraphBuilder &g) {
  Value diagonals = op->getOperand(0);
  FailureOr<Band> band = Band::of(op, g, 1);
  FailureOr<Dims> shape = g.getShape(diagonals);
  if (failed(band) || failed(shape) || shape->empty() || !shape->back().isConstant())
    return g.fail("the length of a diagonal is not known");
  int64_t most = shape->back().getConstant();
  int64_t leastRows = most - std::min<int64_t>(band->upper, 0), leastColumns = most + std::max<int64_t>(band->lower, 0);
  int64_t rows = -1, columns = -1;
  Value padding = g.scalar(g.elementOf(diagonals), 0);
  if (op->getNumOperands() > 1) {
    FailureOr<int64_t> givenRows = g.getConstant(op->getOperand(2)), givenColumns = g.getConstant(op->getOperand(3));
    if (failed(givenRows) || failed(givenColumns))
      return failure();
    rows = *givenRows, columns = *givenColumns;
    padding = op->getOperand(4);
  }
  if (rows == -1 && columns == -1)
    rows = columns = std::max(leastRows, leastColumns);
  rows = rows == -1 ? leastRows : rows;
  columns = columns == -1 ? leastColumns : columns;
  Matrices matrices(g);
  return one(g, putBand(matrices, g, diagonals, *band, rows, columns, padding));
}

/// Operands: matrices; k, padding.
Result matrixDiagPart(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Band> band = Band::of(op, g, 1);
  auto size = getMatrixSize(g, x);
  if (failed(band) || failed(size))
    return failure();
  auto [m, n] = *size;
  Matrices matrices(g);
  if (band->lower == band->upper)
    return one(g, matrices.take(x, m, n, band->lower));
  int64_t most = std::min(m + std::min<int64_t>(band->upper, 0), n - std::max<int64_t>(band->lower, 0));
  SmallVector<Value> rows;
  int64_t last = 0;
  for (int64_t k = band->upper; k >= band->lower; --k) {
    int64_t length = Matrices::lengthOf(m, n, k), offset = band->getOffset(k, length, most);
    Value row = matrices.take(x, m, n, k);
    FailureOr<Dims> shape = g.getShape(row);
    if (failed(shape))
      return failure();
    last = static_cast<int64_t>(shape->size()) - 1;
    rows.push_back(g.padAxis(row, last, offset, most - length - offset, op->getOperand(2)));
  }
  return one(g, g.pack(rows, last));
}

/// Operands: matrices, diagonals; k.
Result matrixSetDiag(Operation *op, GraphBuilder &g) {
  FailureOr<Band> band = Band::of(op, g, 2);
  auto size = getMatrixSize(g, op->getOperand(0));
  if (failed(band) || failed(size))
    return failure();
  Matrices matrices(g);
  return one(g, putBand(matrices, g, op->getOperand(1), *band, size->first, size->second, op->getOperand(0)));
}

/// Operands: diagonals, a row each, those below that of the matrix with what is left over in front, those above with it
/// behind; right sides.
Result bandedTriangularSolve(Operation *op, GraphBuilder &g) {
  Value diagonals = op->getOperand(0);
  auto size = getMatrixSize(g, diagonals);
  if (failed(size))
    return failure();
  const auto [count, n] = *size;
  if (count < 1 || count > n)
    return g.fail("it has " + Twine(count) + " diagonals of a matrix of " + Twine(n) + " rows");
  Band band;
  band.leftAbove = true;
  band.leftBelow = false;
  (getFlag(op, "lower") ? band.lower : band.upper) = getFlag(op, "lower") ? 1 - count : count - 1;
  if (count == 1) { // the row is the diagonal
    FailureOr<Dims> shape = g.getShape(diagonals);
    if (failed(shape))
      return failure();
    Dims flat(shape->begin(), shape->end() - 2);
    flat.push_back(n);
    diagonals = g.reshape(diagonals, flat);
  }
  Matrices matrices(g);
  Value matrix = putBand(matrices, g, diagonals, band, n, n, g.scalar(g.elementOf(diagonals), 0));
  return one(g,
             g.make<MatrixTriangularSolveOp>({matrix, op->getOperand(1)}, {g.flag("lower", getFlag(op, "lower")),
                                                                           g.flag("adjoint", getFlag(op, "adjoint"))}));
}

// ---- Counting -------------------------------------------------------------------------------------

/// Operands: values, how many bins, weights. Values outside are not counted.
Result bincount(Operation *op, GraphBuilder &g) {
  Value values = op->getOperand(0), weights = op->getOperand(2);
  Type element = g.elementOf(weights), index = g.elementOf(values);
  FailureOr<int64_t> size = g.getConstant(op->getOperand(1));
  FailureOr<Dims> shape = g.getShape(values), weightShape = g.getShape(weights);
  if (failed(size) || failed(shape) || failed(weightShape))
    return failure();
  const bool isWeighted = llvm::none_of(*weightShape, [](Dim dim) { return dim == Dim(0); });
  const bool isBinary = getFlag(op, "binary_output");
  Value zero = g.scalar(element, 0), unit = g.scalar(element, 1);
  if (shape->size() == 2 && llvm::isa<DenseBincountOp>(op)) {
    Value hot = g.equal(g.expandDims(values, 2),
                        g.cast(g.make<RangeOp>({g.integer(0), g.integer(*size), g.integer(1)}), index));
    Value counted = g.select(hot, isWeighted && !isBinary ? g.expandDims(weights, 2) : unit, zero);
    return one(g, isBinary ? g.reduce(MaxOp::getOperationName(), counted, {1}, false) : g.sum(counted, {1}));
  }
  Value flat = g.make<ReshapeOp>({values, g.integers({-1})});
  Value ids = g.select(g.less(flat, g.scalar(index, *size)), flat, g.scalar(index, -1));
  Value data = isWeighted && !isBinary ? g.make<ReshapeOp>({weights, g.integers({-1})})
                                       : g.make<OnesLikeOp>(g.cast(flat, element));
  Value counts = g.segmentSum(data, ids, g.integer(*size));
  return one(g, isBinary ? g.minimum(counts, unit) : counts);
}

Result bucketize(Operation *op, GraphBuilder &g) {
  SmallVector<float> bounds;
  for (Attribute bound : op->getAttrOfType<ArrayAttr>("boundaries"))
    bounds.push_back(llvm::cast<FloatAttr>(bound).getValueAsDouble());
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(shape))
    return failure();
  int64_t rank = shape->size();
  Type wide = g.elementOf(op->getOperand(0)).isF64() ? Type(g.builder.getF64Type()) : Type(g.builder.getF32Type());
  Value table = g.cast(g.table({static_cast<int64_t>(bounds.size())}, bounds), wide);
  Value passed = g.lessEqual(table, g.expandDims(g.cast(op->getOperand(0), wide), rank));
  return one(g, g.sum(g.cast(passed, g.builder.getI32Type()), {rank}));
}

/// Operands: rows of numbers in order, rows of values.
Result bound(Operation *op, GraphBuilder &g) {
  Value sorted = g.expandDims(op->getOperand(0), 1), values = g.expandDims(op->getOperand(1), 2);
  // As a binary search has it, also where a value is no number.
  Value passed = llvm::isa<LowerBoundOp>(op) ? g.less(sorted, values) : g.negate(g.less(values, sorted));
  return one(g, g.sum(g.cast(passed, g.elementOf(op->getResult(0))), {2}));
}

/// Operands: values, the range (its two ends), how many bins of equal width; what lies outside is counted at the ends.
/// In double precision, as TensorFlow's kernel.
Result histogram(Operation *op, GraphBuilder &g) {
  Value range = op->getOperand(1);
  FailureOr<int64_t> bins = g.getConstant(op->getOperand(2));
  if (failed(bins))
    return failure();
  Type f64 = g.builder.getF64Type(), i32 = g.builder.getI32Type();
  Value values = g.make<ReshapeOp>({op->getOperand(0), g.integers({-1})});
  Value low = g.slice(range, 0, 0, 1), high = g.slice(range, 0, 1, 1);
  Value width = g.div(g.cast(g.sub(high, low), f64), g.scalar(f64, static_cast<double>(*bins)));
  Value position = g.div(g.cast(g.sub(g.maximum(values, low), low), f64), width);
  Value ids = g.cast(g.minimum(position, g.scalar(f64, static_cast<double>(*bins - 1))), i32);
  return one(g, g.segmentSum(g.cast(g.make<OnesLikeOp>(ids), g.elementOf(op->getResult(0))), ids, g.integer(*bins)));
}

/// Whether fewer than k classes are more probable than the target; not where anything is no number.
Result inTopK(Operation *op, GraphBuilder &g) {
  Value predictions = op->getOperand(0), targets = op->getOperand(1);
  Type index = g.elementOf(targets), f32 = g.elementOf(predictions), i32 = g.builder.getI32Type(),
       i1 = g.builder.getI1Type();
  Value hot = g.equal(g.positions(predictions, 1, index), g.expandDims(targets, 1));
  Value own = g.sum(g.select(hot, predictions, g.scalar(f32, 0)), {1}, /*keepDims=*/true);
  Value better = g.sum(g.cast(g.less(own, predictions), i32), {1});
  Value k = op->getNumOperands() > 2 ? g.cast(op->getOperand(2), i32) : g.integer(getNumber(op, "k"));
  Value isFinite = g.reduce(AllOp::getOperationName(), g.make<IsFiniteOp>(predictions, {}, i1), {1}, false);
  Value isClass = g.reduce(AnyOp::getOperationName(), hot, {1}, false);
  return one(g, g.both(g.less(better, k), g.both(isFinite, isClass)));
}

/// Operands: rows, the number of the element.
Result nthElement(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  FailureOr<int64_t> n = g.getConstant(op->getOperand(1));
  if (failed(shape) || failed(n))
    return failure();
  if (shape->empty() || !shape->back().isConstant() || *n < 0 || *n >= shape->back().getConstant())
    return g.fail("element " + Twine(*n) + " of a row of shape " + shapes::print(*shape) + " is not known");
  const int64_t last = static_cast<int64_t>(shape->size()) - 1, size = shape->back().getConstant();
  const int64_t at = getFlag(op, "reverse") ? *n : size - 1 - *n;
  Type i32 = g.builder.getI32Type();
  auto largest = g.makeAll<TopKV2Op>({x, g.integer(at + 1)}, {g.elementOf(x), i32}, g.flag("sorted", true));
  return one(g, g.reshape(g.slice(largest[0], last, at, 1), ArrayRef(*shape).drop_back()));
}

/// Operands: places (or one), the sizes.
Result unravelIndex(Operation *op, GraphBuilder &g) {
  Value place = op->getOperand(0);
  Type element = g.elementOf(place);
  FailureOr<SmallVector<int64_t>> sizes = g.getConstants(op->getOperand(1));
  if (failed(sizes))
    return failure();
  int64_t stride = 1;
  for (int64_t size : *sizes)
    if (size <= 0 || llvm::MulOverflow(stride, size, stride))
      return g.fail("its sizes are not those of a tensor with elements");
  SmallVector<Value> rows;
  for (auto [axis, size] : llvm::enumerate(*sizes)) {
    stride /= size;
    Value at = g.make<FloorDivOp>({place, g.scalar(element, static_cast<double>(stride))});
    // Looked up, so that a place outside is an error.
    Value range = g.cast(g.make<RangeOp>({g.integer(0), g.integer(size), g.integer(1)}), element);
    rows.push_back(axis == 0 ? g.gather(range, at, 0)
                             : g.make<FloorModOp>({at, g.scalar(element, static_cast<double>(size))}));
  }
  return one(g, g.pack(rows, 0));
}

} // namespace distc::dfg::decompositions

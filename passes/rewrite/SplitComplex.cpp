//===- SplitComplex.cpp - Complex numbers are two real ones, Fourier transforms products ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What a complex tensor is made of, its real and its imaginary part, are two tensors of
// its shape. A Fourier transform along an axis of n elements is a product with a matrix
// of n cosines and sines a row, which a plan knows how to place, fuse and share out: for
// windows of hundreds of samples it is not far from a fast transform.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/rewrite/Passes.h"
#include <cmath>

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_SPLITCOMPLEX
#include "passes/rewrite/Passes.h.inc"

namespace {

using dfg::Dim;
using dfg::Dims;
using Builder = dfg::GraphBuilder;

/// A matrix of a transform has this many elements at most.
constexpr int64_t kMaxElements = int64_t(1) << 24;

/// Real and imaginary part; the second is null where it is zero.
struct Parts {
  Value real, imaginary;
};

bool isComplex(Value value) { return llvm::isa_and_nonnull<ComplexType>(Builder::elementOf(value)); }

bool isZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (llvm::isa_and_nonnull<dfg::ZerosLikeOp>(op))
    return true;
  if (llvm::isa_and_nonnull<dfg::FillOp>(op))
    return isZero(op->getOperand(1));
  if (op && (llvm::isa<dfg::CastOp>(op) || op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>() ||
             op->hasTrait<dfg::Repeats>()))
    return isZero(op->getOperand(0));
  return op && (matchPattern(op, m_PosZeroFloat()) || matchPattern(op, m_Zero()));
}

class Splitter {
public:
  Splitter(dfg::GraphOp graph, const DenseSet<Operation *> &needed) : graph(graph), needed(needed) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(graph.getBody().front())) {
      const bool isMet = llvm::any_of(op.getOperands(), isComplex) || llvm::any_of(op.getResults(), isComplex);
      if (isMet && needed.contains(&op) && !llvm::isa<dfg::VarHandleOp>(op)) {
        OpBuilder builder(&op);
        Builder g(builder, shapes, &op);
        if (failed(split(&op, g)))
          return refuse(&op, g);
        continue;
      }
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
    }
    for (Operation *op : llvm::reverse(done)) {
      if (op->use_empty()) {
        op->erase();
        continue;
      }
      // What no endpoint needs still reads it, and its name is another node's now: control edges would lead to both.
      op->setLoc(NameLoc::get(StringAttr::get(op->getContext(), dfg::getNodeName(op) + "/complex")));
    }
    return success();
  }

private:
  static StringRef getName(Operation *op) {
    auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
    return opaque ? opaque.getOp() : op->getName().stripDialect();
  }

  LogicalResult refuse(Operation *op, Builder &g) {
    InFlightDiagnostic error = op->emitError() << "node '" << dfg::getNodeName(op) << "' (op '" << getName(op)
                                               << "') works on complex numbers, and distc has no code for that: ";
    if (g.getReason().empty())
      return error << "compute with their real and imaginary parts, or fetch or train something that does not need it";
    return error << g.getReason();
  }

  Parts get(Value value) {
    auto it = parts.find(value);
    return it == parts.end() ? Parts() : it->second;
  }

  /// The node is gone; control edges to it lead to what has its name.
  LogicalResult replace(Operation *op, Builder &g, Parts result, unsigned number = 0) {
    if (g.failed() || !result.real)
      return failure();
    Value named = g.make<dfg::IdentityOp>(result.real);
    if (!named)
      return failure();
    if (number == 0) {
      named.getDefiningOp()->setLoc(op->getLoc());
      if (auto control = op->getDiscardableAttr(dfg::kControlAttr))
        named.getDefiningOp()->setDiscardableAttr(dfg::kControlAttr, control);
      done.push_back(op);
    }
    if (isComplex(op->getResult(number)))
      parts[op->getResult(number)] = {named, result.imaginary};
    else
      op->getResult(number).replaceAllUsesWith(named);
    return success();
  }

  static Value add(Builder &g, Value x, Value y) { return !x ? y : !y ? x : g.add(x, y); }
  static Value sub(Builder &g, Value x, Value y) { return !y ? x : !x ? g.neg(y) : g.sub(x, y); }
  static Value mul(Builder &g, Value x, Value y) { return !x || !y ? Value() : g.mul(x, y); }
  static Parts multiply(Builder &g, Parts a, Parts b) {
    return {sub(g, g.mul(a.real, b.real), mul(g, a.imaginary, b.imaginary)),
            add(g, mul(g, a.real, b.imaginary), mul(g, a.imaginary, b.real))};
  }
  static Parts conjugate(Builder &g, Parts x) { return {x.real, x.imaginary ? g.neg(x.imaginary) : Value()}; }
  static Parts divide(Builder &g, Parts a, Parts b, bool noNan) {
    auto quotient = [&](Value x, Value y) -> Value {
      return !x ? Value() : noNan ? g.make<dfg::DivNoNanOp>({x, y}) : g.div(x, y);
    };
    if (!b.imaginary)
      return {quotient(a.real, b.real), quotient(a.imaginary, b.real)};
    // By the larger part, so that neither square overflows.
    Value isReal = g.lessEqual(g.make<dfg::AbsOp>(b.imaginary), g.make<dfg::AbsOp>(b.real));
    Value large = g.select(isReal, b.real, b.imaginary), small = g.select(isReal, b.imaginary, b.real);
    Value ratio = quotient(small, large), sum = g.add(large, g.mul(small, ratio));
    Value imaginary = a.imaginary ? a.imaginary : g.zerosLike(a.real);
    Value one = g.scalar(g.elementOf(a.real), 1);
    Value byReal = g.select(isReal, one, ratio), byImaginary = g.select(isReal, ratio, one);
    return {quotient(g.add(g.mul(a.real, byReal), g.mul(imaginary, byImaginary)), sum),
            quotient(g.sub(g.mul(imaginary, byReal), g.mul(a.real, byImaginary)), sum)};
  }
  static Parts exponential(Builder &g, Parts x) {
    Value size = g.exp(x.real);
    if (!x.imaginary)
      return {size, {}};
    return {g.mul(size, g.make<dfg::CosOp>(x.imaginary)), g.mul(size, g.make<dfg::SinOp>(x.imaginary))};
  }
  Value absolute(Builder &g, Parts x) {
    if (!x.imaginary)
      return g.make<dfg::AbsOp>(x.real);
    // The larger part apart, as hypot does: squares of small numbers are none.
    Value a = g.make<dfg::AbsOp>(x.real), b = g.make<dfg::AbsOp>(x.imaginary);
    Value large = g.maximum(a, b), ratio = g.make<dfg::DivNoNanOp>({g.minimum(a, b), large});
    Value size = g.mul(large, g.make<dfg::SqrtOp>(g.add(g.scalar(g.elementOf(a), 1), g.mul(ratio, ratio))));
    // One part that is infinite is enough, whatever the other is.
    Value infinity = g.scalar(g.elementOf(a), std::numeric_limits<double>::infinity());
    Value isInfinite = g.make<dfg::LogicalOrOp>({g.equal(a, infinity), g.equal(b, infinity)});
    return g.select(isInfinite, infinity, size);
  }

  /// The same node on each part.
  LogicalResult forEachPart(Operation *op, Builder &g) {
    SmallVector<Values> results;
    for (bool isReal : {true, false}) {
      if (!isReal && llvm::none_of(op->getOperands(), [&](Value operand) { return get(operand).imaginary; }))
        break;
      IRMapping mapping;
      for (Value operand : op->getOperands()) {
        if (!isComplex(operand))
          continue;
        Parts of = get(operand);
        if (!of.real)
          return failure();
        mapping.map(operand, isReal ? of.real : of.imaginary ? of.imaginary : g.zerosLike(of.real));
      }
      Operation *copy = g.builder.clone(*op, mapping);
      copy->setLoc(
          NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(op) + (isReal ? "/real_part" : "/imaginary_part"))));
      for (Value result : copy->getResults())
        if (auto type = llvm::dyn_cast<ComplexType>(g.elementOf(result)))
          result.setType(llvm::cast<ShapedType>(result.getType()).clone(type.getElementType()));
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(copy); node && failed(node.inferShapes(shapes)))
        return failure();
      results.push_back(llvm::to_vector_of<Value>(copy->getResults()));
    }
    for (OpResult result : op->getResults()) {
      const unsigned number = result.getResultNumber();
      if (failed(replace(op, g, {results[0][number], results.size() > 1 ? results[1][number] : Value()}, number)))
        return failure();
    }
    return success();
  }
  using Values = SmallVector<Value>;

  Value makeConstant(Builder &g, DenseElementsAttr value, StringRef suffix) {
    Location loc = NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(g.node) + suffix));
    auto made = dfg::ConstOp::create(g.builder, loc, value.getType(), value);
    return failed(made.inferShapes(shapes)) ? Value() : made->getResult(0);
  }

  LogicalResult constant(dfg::ConstOp op, Builder &g) {
    auto values = llvm::dyn_cast<DenseElementsAttr>(op.getValue());
    if (!values || !llvm::isa<ComplexType>(values.getElementType()))
      return g.fail("its value is not known here");
    auto type = llvm::cast<RankedTensorType>(values.getType());
    Type element = llvm::cast<ComplexType>(type.getElementType()).getElementType();
    SmallVector<APFloat> real, imaginary;
    bool isReal = true;
    for (std::complex<APFloat> value : values.getValues<std::complex<APFloat>>()) {
      real.push_back(value.real());
      imaginary.push_back(value.imag());
      isReal &= value.imag().isPosZero();
    }
    auto make = [&](ArrayRef<APFloat> numbers) {
      return makeConstant(g, DenseElementsAttr::get(type.clone(element), numbers), "/part");
    };
    return replace(op, g, {make(real), isReal ? Value() : make(imaginary)});
  }

  // ---- Fourier transforms ----------------------------------------------------------------------------

  /// x times a matrix, along the last axis.
  Value multiplyLast(Builder &g, Value x, int64_t rows, int64_t columns, ArrayRef<double> table) {
    FailureOr<Dims> sizes = g.getShape(x);
    if (failed(sizes))
      return {};
    Dim others = 1;
    for (Dim size : ArrayRef(*sizes).drop_back())
      others = others * size;
    auto type = RankedTensorType::get({rows, columns}, g.elementOf(x));
    auto numbers = type.getElementType().isF64()
                       ? DenseElementsAttr::get(type, table)
                       : DenseElementsAttr::get(type, ArrayRef(SmallVector<float>(table.begin(), table.end())));
    Value product = g.matMul(g.reshape(x, {others, Dim(rows)}), makeConstant(g, numbers, "/matrix"));
    Dims made = *sizes;
    made.back() = Dim(columns);
    return g.reshape(product, made);
  }

  /// The last axis with `size` elements: the first ones, or zeros behind.
  Value resizeLast(Builder &g, Value x, int64_t size) {
    FailureOr<Dims> sizes = x ? g.getShape(x) : FailureOr<Dims>(failure());
    if (failed(sizes) || !sizes->back().isConstant())
      return {};
    const int64_t axis = static_cast<int64_t>(sizes->size()) - 1, own = sizes->back().getConstant();
    if (own == size)
      return x;
    return own > size ? g.slice(x, axis, 0, size) : g.padAxis(x, axis, 0, size - own);
  }

  /// The cosine and sine of `number` of `count` parts of a turn. Those of quarters are exact: what a real signal has
  /// none of, the imaginary part of its mean, is zero and no rounding error, whose sign would decide about an angle.
  static std::pair<double, double> rootOfUnity(int64_t number, int64_t count) {
    const int64_t quarter = 4 * number / count;
    const double angle = M_PI / 2 * static_cast<double>(4 * number % count) / static_cast<double>(count);
    const double cosine = std::cos(angle), sine = std::sin(angle);
    switch (quarter) {
    case 0:
      return {cosine, sine};
    case 1:
      return {0 - sine, cosine};
    case 2:
      return {0 - cosine, 0 - sine};
    default:
      return {sine, 0 - cosine};
    }
  }

  /// Along the last axis, of `length` elements: `from` of them that are given, `to` that are asked for. `sign`: -1
  /// forward; 1 backward, where each is divided by the length. `mirrored`: all but the first (and the middle) stand for
  /// two, and the result is real.
  Parts transformLast(Builder &g, Parts x, int64_t length, int64_t from, int64_t to, int sign, bool mirrored) {
    if (length < 1 || from * to > kMaxElements)
      return (void)g.fail("a transform of " + Twine(length) + " elements is too long for a product with a matrix"),
             Parts();
    std::vector<double> cosines(from * to), sines(from * to);
    for (int64_t row = 0; row < from; ++row)
      for (int64_t column = 0; column < to; ++column) {
        auto [cosine, sine] = rootOfUnity(row * column % length, length);
        double weight = sign > 0 ? 1.0 / static_cast<double>(length) : 1.0;
        if (mirrored && row > 0 && 2 * row != length)
          weight *= 2;
        cosines[row * to + column] = weight * cosine;
        sines[row * to + column] = sine == 0 ? 0 : weight * sign * sine;
      }
    Value real = multiplyLast(g, x.real, from, to, cosines);
    if (x.imaginary)
      real = g.sub(real, multiplyLast(g, x.imaginary, from, to, sines));
    if (mirrored)
      return {real, {}};
    Value imaginary = multiplyLast(g, x.real, from, to, sines);
    if (x.imaginary)
      imaginary = g.add(imaginary, multiplyLast(g, x.imaginary, from, to, cosines));
    return {real, imaginary};
  }

  Parts onParts(Parts x, llvm::function_ref<Value(Value)> function) {
    return {function(x.real), x.imaginary ? function(x.imaginary) : Value()};
  }

  /// FFT, IFFT2D, RFFT, IRFFT3D, ... of the last `rank` axes.
  LogicalResult transform(Operation *op, Builder &g, StringRef name) {
    const bool isInverse = name.contains("IFFT") || name.contains("IRFFT"), isReal = name.contains("RFFT");
    const int64_t rank = name.contains("2D") ? 2 : name.contains("3D") ? 3 : 1;
    Value input = op->getOperand(0);
    Parts x = isComplex(input) ? get(input) : Parts{input, {}};
    if (!x.real)
      return failure();
    FailureOr<Dims> sizes = g.getShape(x.real);
    if (failed(sizes) || static_cast<int64_t>(sizes->size()) < rank)
      return failure();
    const int64_t axes = static_cast<int64_t>(sizes->size());
    SmallVector<int64_t> lengths;
    if (isReal) {
      auto given = shapes.getConstants(op->getOperand(1));
      if (!given || static_cast<int64_t>(given->size()) != rank)
        return g.fail("the lengths of a transform must be known");
      lengths = *given;
    } else {
      for (Dim size : ArrayRef(*sizes).take_back(rank)) {
        if (!size.isConstant())
          return g.fail("the size of an axis that is transformed must be known");
        lengths.push_back(size.getConstant());
      }
    }
    const int sign = isInverse ? 1 : -1;
    // Real ones have half of the last axis.
    auto along = [&](int64_t index) {
      const int64_t axis = axes - rank + index, length = lengths[index];
      const bool isHalf = isReal && index == rank - 1;
      SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, axes));
      std::swap(swapped[axis], swapped.back());
      auto turn = [&](Value value) { return axis == axes - 1 ? value : g.transpose(value, swapped); };
      const int64_t half = length / 2 + 1, from = isHalf && isInverse ? half : length,
                    to = isHalf && !isInverse ? half : length;
      x = onParts(x, [&](Value part) { return resizeLast(g, turn(part), from); });
      if (!x.real)
        return;
      x = transformLast(g, x, length, from, to, sign, isHalf && isInverse);
      x = onParts(x, turn);
    };
    // The half is that of a real tensor: it is the first made, and the last undone.
    if (isReal && !isInverse)
      for (int64_t index = rank - 1; index >= 0; --index)
        along(index);
    else
      for (int64_t index = 0; index < rank; ++index)
        along(index);
    return replace(op, g, x);
  }

  // ---- Nodes ---------------------------------------------------------------------------------------------

  /// What is fetched has one tensor.
  bool isFetched(Operation *op) {
    auto names = [&](Attribute endpoint) {
      auto text = llvm::dyn_cast_or_null<StringAttr>(endpoint);
      return text && text.getValue().split(':').first == dfg::getNodeName(op);
    };
    ArrayAttr fetches = graph.getFetchesAttr();
    return names(graph.getLossAttr()) || (fetches && llvm::any_of(fetches, names));
  }

  LogicalResult split(Operation *op, Builder &g) {
    if (llvm::any_of(op->getResults(), isComplex) && isFetched(op))
      return g.fail("it cannot be fetched: fetch its real and its imaginary part (tf.math.real, tf.math.imag)");
    StringRef name = getName(op);
    Value x = op->getNumOperands() > 0 ? op->getOperand(0) : Value();
    Value y = op->getNumOperands() > 1 ? op->getOperand(1) : Value();
    Parts a = x ? get(x) : Parts(), b = y ? get(y) : Parts();
    if (name.ends_with("FFT") || name.ends_with("FFT2D") || name.ends_with("FFT3D"))
      return transform(op, g, name);
    if (auto constantOp = llvm::dyn_cast<dfg::ConstOp>(op))
      return constant(constantOp, g);
    if (name == "Complex") {
      // Both are broadcast to each other; what zeros are taken from keeps the sign of its own.
      const bool areAlike = shapes.getShape(x) && shapes.getShape(x) == shapes.getShape(y);
      Value real = areAlike ? x : g.sub(x, g.zerosLike(y));
      return replace(op, g, {real, isZero(y) ? Value() : areAlike ? y : g.sub(y, g.zerosLike(x))});
    }
    if (llvm::isa<dfg::CastOp>(op) && !isComplex(x))
      return replace(op, g, {g.cast(x, llvm::cast<ComplexType>(g.elementOf(op->getResult(0))).getElementType()), {}});
    if (isComplex(x) && !a.real)
      return failure();
    if (op->hasTrait<dfg::AsksShapes>()) {
      for (OpOperand &operand : op->getOpOperands())
        if (Value real = get(operand.get()).real)
          operand.set(real);
      return llvm::cast<dfg::ShapeInterface>(op).inferShapes(shapes);
    }
    if (name == "Real" || llvm::isa<dfg::CastOp>(op)) {
      auto complex = llvm::dyn_cast<ComplexType>(g.elementOf(op->getResult(0)));
      Type element = complex ? complex.getElementType() : g.elementOf(op->getResult(0));
      return replace(op, g, {g.cast(a.real, element), complex ? g.cast(a.imaginary, element) : Value()});
    }
    if (name == "Imag")
      return replace(op, g, {a.imaginary ? a.imaginary : g.zerosLike(a.real), {}});
    if (name == "Conj")
      return replace(op, g, conjugate(g, a));
    if (name == "ComplexAbs")
      return replace(op, g, {absolute(g, a), {}});
    if (name == "Angle")
      return replace(op, g, {g.make<dfg::Atan2Op>({a.imaginary ? a.imaginary : g.zerosLike(a.real), a.real}), {}});
    if (llvm::isa<dfg::ConjugateTransposeOp>(op)) {
      if (failed(forEachPart(op, g)))
        return failure();
      Parts &made = parts[op->getResult(0)];
      made = conjugate(g, made);
      return success();
    }
    if (op->getNumOperands() == 2 && isComplex(x) && isComplex(y)) {
      if (!b.real)
        return failure();
      if (op->hasTrait<dfg::Adds>() || llvm::isa<dfg::SubOp>(op)) {
        // Of which one has no imaginary part, the other's may have to be broadcast.
        const bool isSub = llvm::isa<dfg::SubOp>(op);
        Value real = isSub ? g.sub(a.real, b.real) : g.add(a.real, b.real), imaginary;
        if (a.imaginary || b.imaginary) {
          Value left = a.imaginary ? a.imaginary : g.zerosLike(a.real);
          Value right = b.imaginary ? b.imaginary : g.zerosLike(b.real);
          imaginary = isSub ? g.sub(left, right) : g.add(left, right);
        }
        return replace(op, g, {real, imaginary});
      }
      if (llvm::isa<dfg::MulOp>(op))
        return replace(op, g, multiply(g, a, b));
      if (op->hasTrait<dfg::Divides>())
        return replace(op, g, divide(g, a, b, llvm::isa<dfg::DivNoNanOp>(op)));
      if (op->hasTrait<dfg::MultipliesMatrices>())
        return matMul(op, g, a, b);
      if (llvm::isa<dfg::EinsumOp>(op))
        return einsum(op, g, a, b);
    }
    if (llvm::isa<dfg::EinsumOp>(op) && op->getNumOperands() == 1)
      return forEachPart(op, g);
    if (llvm::isa<dfg::SquareOp>(op))
      return replace(op, g, multiply(g, a, a));
    if (llvm::isa<dfg::NegOp>(op))
      return replace(op, g, onParts(a, [&](Value part) { return g.neg(part); }));
    if (llvm::isa<dfg::ExpOp>(op))
      return replace(op, g, exponential(g, a));
    if (llvm::isa<dfg::ReciprocalOp>(op))
      return replace(op, g, divide(g, {g.scalar(g.elementOf(a.real), 1), {}}, a, false));
    // Of ones both parts would be one.
    if ((dfg::movesElements(op) && !llvm::isa<dfg::OnesLikeOp>(op)) ||
        llvm::isa<dfg::AddNOp, dfg::SumOp, dfg::MeanOp, dfg::CumsumOp, dfg::UnsortedSegmentSumOp>(op))
      return forEachPart(op, g);
    return failure();
  }

  LogicalResult einsum(Operation *op, Builder &g, Parts a, Parts b) {
    auto product = [&](Value x, Value y) -> Value {
      return !x || !y ? Value() : g.make<dfg::EinsumOp>({x, y}, g.attribute("equation", op->getAttr("equation")));
    };
    return replace(op, g,
                   {sub(g, product(a.real, b.real), product(a.imaginary, b.imaginary)),
                    add(g, product(a.real, b.imaginary), product(a.imaginary, b.real))});
  }

  LogicalResult matMul(Operation *op, Builder &g, Parts a, Parts b) {
    const bool isBatched = !llvm::isa<dfg::MatMulOp>(op);
    auto isSet = [&](StringRef flag) {
      auto attribute = op->getAttrOfType<BoolAttr>(flag);
      return attribute && attribute.getValue();
    };
    const bool turnA = isSet(isBatched ? "adj_x" : "transpose_a"), turnB = isSet(isBatched ? "adj_y" : "transpose_b");
    if (isBatched && turnA)
      a = conjugate(g, a);
    if (isBatched && turnB)
      b = conjugate(g, b);
    auto product = [&](Value x, Value y) -> Value {
      return !x || !y ? Value() : isBatched ? g.batchMatMul(x, y, turnA, turnB) : g.matMul(x, y, turnA, turnB);
    };
    return replace(op, g,
                   {sub(g, product(a.real, b.real), product(a.imaginary, b.imaginary)),
                    add(g, product(a.real, b.imaginary), product(a.imaginary, b.real))});
  }

  dfg::GraphOp graph;
  const DenseSet<Operation *> &needed;
  dfg::ShapeContext shapes;
  DenseMap<Value, Parts> parts;
  SmallVector<Operation *> done;
};

struct SplitComplex : impl::SplitComplexBase<SplitComplex> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      EndpointNodes nodes(graph);
      FailureOr<DenseSet<Operation *>> needed = nodes.collect(nodes.findEndpoints());
      if (failed(needed))
        return signalPassFailure();
      auto isMet = [](Operation *op) { return llvm::any_of(op->getResults(), isComplex); };
      if (llvm::any_of(*needed, isMet) && failed(Splitter(graph, *needed).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace distc::rewrite

//===- Complex.cpp - Complex numbers and Fourier transforms ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Nodes as TensorFlow's, which `dfg-split-complex` takes apart: what only moves, adds or
// multiplies elements is of the same nodes as of real numbers. Functions are written with
// real and imaginary parts here.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Elementwise.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc::stablehlo {

Converter::Form Converter::findComplexForm(StringRef name) {
  using C = Converter;
  static const llvm::StringMap<Form> table = {
      {"stablehlo.abs", {&C::complexAbs, 1}},         {"stablehlo.sign", {&C::complexSign, 1}},
      {"stablehlo.divide", {&C::complexDivide, 2}},   {"stablehlo.exponential_minus_one", {&C::complexExpm1, 1}},
      {"stablehlo.log", {&C::complexLog, 1}},         {"stablehlo.log_plus_one", {&C::complexLog1p, 1}},
      {"stablehlo.sqrt", {&C::complexSqrt, 1}},       {"stablehlo.power", {&C::complexPower, 2}},
      {"stablehlo.compare", {&C::complexCompare, 2}}, {"stablehlo.convert", {&C::complexConvert, 1}},
  };
  if (auto it = table.find(name); it != table.end())
    return it->second;
  // Of the same nodes as of real numbers.
  static const llvm::StringSet<> alike = {"func.call",
                                          "stablehlo.composite",
                                          "stablehlo.constant",
                                          "stablehlo.add",
                                          "stablehlo.subtract",
                                          "stablehlo.multiply",
                                          "stablehlo.negate",
                                          "stablehlo.exponential",
                                          "stablehlo.select",
                                          "stablehlo.complex",
                                          "stablehlo.real",
                                          "stablehlo.imag",
                                          "stablehlo.fft",
                                          "stablehlo.optimization_barrier",
                                          "stablehlo.broadcast_in_dim",
                                          "stablehlo.dynamic_broadcast_in_dim",
                                          "stablehlo.reshape",
                                          "stablehlo.dynamic_reshape",
                                          "stablehlo.transpose",
                                          "stablehlo.concatenate",
                                          "stablehlo.reverse",
                                          "stablehlo.pad",
                                          "stablehlo.dynamic_pad",
                                          "stablehlo.slice",
                                          "stablehlo.real_dynamic_slice",
                                          "stablehlo.get_dimension_size",
                                          "stablehlo.reduce",
                                          "stablehlo.dot_general",
                                          "stablehlo.gather",
                                          "stablehlo.dynamic_gather",
                                          "stablehlo.scatter",
                                          "stablehlo.dynamic_slice",
                                          "stablehlo.dynamic_update_slice",
                                          "stablehlo.while",
                                          "stablehlo.if",
                                          "stablehlo.case"};
  return alike.contains(name) ? findForm(name) : Form();
}

bool Converter::isOfComplex(Operation *op) {
  auto isComplex = [](Type type) { return llvm::isa<ComplexType>(getElementTypeOrSelf(type)); };
  return llvm::any_of(op->getOperandTypes(), isComplex) || llvm::any_of(op->getResultTypes(), isComplex);
}

// ---- Parts ----------------------------------------------------------------------------------------------------------

/// The real type of the parts of `element`.
static Type getPartType(Type element) {
  auto complex = llvm::dyn_cast<ComplexType>(element);
  return complex ? complex.getElementType() : element;
}

Value Converter::makeOpaque(Builder &g, StringRef kind, ValueRange operands, const Dims &sizes, Type element,
                            ArrayRef<NamedAttribute> types) {
  if (g.failed() || llvm::any_of(operands, [](Value operand) { return !operand; }))
    return {};
  Location loc = NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(g.node) + "/" + kind));
  Type type = dfg::getTensorType(sizes, element);
  auto node = dfg::OpaqueOp::create(g.builder, loc, TypeRange(type), kind, operands, /*stateless=*/true);
  dfg::setSourceAttributes(node, types);
  g.made.push_back(node);
  shapes.setShape(node->getResult(0), sizes);
  return node->getResult(0);
}

/// One of Real, Imag and ComplexAbs.
Value Converter::makePart(Builder &g, StringRef kind, Value x) {
  FailureOr<Dims> sizes = g.getShape(x);
  if (failed(sizes))
    return {};
  Type element = Builder::elementOf(x), part = getPartType(element);
  return makeOpaque(g, kind, x, *sizes, part,
                    {g.attribute("T", TypeAttr::get(element)), g.attribute("Tout", TypeAttr::get(part))});
}

Value Converter::makeComplex(Builder &g, Value real, Value imaginary) {
  FailureOr<Dims> sizes = real ? g.getShape(real) : FailureOr<Dims>(failure());
  if (failed(sizes))
    return {};
  Type part = Builder::elementOf(real), element = ComplexType::get(part);
  return makeOpaque(g, "Complex", {real, imaginary}, *sizes, element,
                    {g.attribute("T", TypeAttr::get(part)), g.attribute("Tout", TypeAttr::get(element))});
}

Converter::Result Converter::complexOf(Operation *, Values operands, Builder &g) {
  return one(g, makeComplex(g, operands[0], operands[1]));
}

Converter::Result Converter::partOf(Operation *op, Values operands, Builder &g) {
  const bool isReal = op->getName().getStringRef() == "stablehlo.real";
  if (!llvm::isa<ComplexType>(Builder::elementOf(operands[0])))
    return one(g, isReal ? operands[0] : g.zerosLike(operands[0]));
  return one(g, makePart(g, isReal ? "Real" : "Imag", operands[0]));
}

Converter::Result Converter::complexAbs(Operation *, Values operands, Builder &g) {
  return one(g, makePart(g, "ComplexAbs", operands[0]));
}

Converter::Result Converter::complexSign(Operation *, Values operands, Builder &g) {
  Value size = makePart(g, "ComplexAbs", operands[0]);
  auto over = [&](StringRef part) { return g.make<dfg::DivNoNanOp>({makePart(g, part, operands[0]), size}); };
  return one(g, makeComplex(g, over("Real"), over("Imag")));
}

Converter::Result Converter::complexDivide(Operation *, Values operands, Builder &g) {
  narrow(g, operands);
  return one(g, g.div(operands[0], operands[1]));
}

Converter::Result Converter::complexCompare(Operation *op, Values operands, Builder &g) {
  StringRef direction = getKeyword(op, "comparison_direction");
  if (direction != "EQ" && direction != "NE")
    return fail(g, "orders complex numbers");
  auto areEqual = [&](StringRef part) {
    return g.equal(makePart(g, part, operands[0]), makePart(g, part, operands[1]));
  };
  Value equal = g.both(areEqual("Real"), areEqual("Imag"));
  return one(g, direction == "EQ" ? equal : g.negate(equal));
}

Converter::Result Converter::complexConvert(Operation *op, Values operands, Builder &g) {
  Value x = operands[0];
  Type to = elementOfResult(op);
  if (!llvm::isa<ComplexType>(to))
    return fail(g, "makes real numbers of complex ones");
  if (isUnsigned(op->getOperand(0)))
    return fail(g, "makes complex numbers of unsigned integers");
  auto cast = [&](Value value) {
    return llvm::isa<ComplexType>(Builder::elementOf(value)) ? g.cast(value, to)
                                                             : g.cast(g.cast(value, getPartType(to)), to);
  };
  Value wide = cast(x);
  if (auto it = narrowed.find(x); it != narrowed.end() && wide)
    narrowed[wide] = cast(it->second);
  return one(g, wide);
}

// ---- Functions ------------------------------------------------------------------------------------------------------

Converter::Result Converter::complexExpm1(Operation *, Values operands, Builder &g) {
  Value x = makePart(g, "Real", operands[0]), y = makePart(g, "Imag", operands[0]);
  // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2 (y / 2), of which no digits cancel near zero.
  Value half = g.make<dfg::SinOp>(g.mul(y, g.scalar(Builder::elementOf(y), 0.5)));
  Value real = g.sub(g.mul(g.make<dfg::Expm1Op>(x), g.make<dfg::CosOp>(y)),
                     g.mul(g.scalar(Builder::elementOf(y), 2), g.mul(half, half)));
  return one(g, makeComplex(g, real, g.mul(g.exp(x), g.make<dfg::SinOp>(y))));
}

Value Converter::makeLog(Builder &g, Value x) {
  return makeComplex(g, g.log(makePart(g, "ComplexAbs", x)),
                     g.make<dfg::Atan2Op>({makePart(g, "Imag", x), makePart(g, "Real", x)}));
}

Converter::Result Converter::complexLog(Operation *, Values operands, Builder &g) {
  return one(g, makeLog(g, operands[0]));
}

Converter::Result Converter::complexLog1p(Operation *, Values operands, Builder &g) {
  Value x = makePart(g, "Real", operands[0]), y = makePart(g, "Imag", operands[0]);
  Value one_ = g.scalar(Builder::elementOf(x), 1), two = g.scalar(Builder::elementOf(x), 2);
  // log |1 + z|^2 / 2
  Value square = g.add(g.mul(x, g.add(two, x)), g.mul(y, y));
  Value real = g.mul(g.scalar(Builder::elementOf(x), 0.5), g.make<dfg::Log1pOp>(square));
  return one(g, makeComplex(g, real, g.make<dfg::Atan2Op>({y, g.add(one_, x)})));
}

Converter::Result Converter::complexSqrt(Operation *, Values operands, Builder &g) {
  Value x = makePart(g, "Real", operands[0]), y = makePart(g, "Imag", operands[0]);
  Value size = makePart(g, "ComplexAbs", operands[0]);
  Value zero = g.scalar(Builder::elementOf(x), 0), half = g.scalar(Builder::elementOf(x), 0.5);
  // The larger part is a root, of which no digits cancel; the other is y / 2 over it.
  Value large = g.make<dfg::SqrtOp>(g.mul(half, g.add(size, g.make<dfg::AbsOp>(x))));
  Value small = g.make<dfg::DivNoNanOp>({g.mul(half, g.make<dfg::AbsOp>(y)), large});
  Value isRight = g.lessEqual(zero, x), isAbove = g.lessEqual(zero, y);
  Value imaginary = g.select(isRight, small, large);
  return one(g, makeComplex(g, g.select(isRight, large, small), g.select(isAbove, imaginary, g.neg(imaginary))));
}

Converter::Result Converter::complexPower(Operation *, Values operands, Builder &g) {
  // e^(y log x); of zero it is zero, and one where y is.
  narrow(g, operands);
  Value x = operands[0], y = operands[1];
  Value power = g.exp(g.mul(y, makeLog(g, x)));
  Value zero = g.scalar(getPartType(Builder::elementOf(x)), 0);
  Value isZero = g.equal(makePart(g, "ComplexAbs", x), zero), isOne = g.equal(makePart(g, "ComplexAbs", y), zero);
  Value real = makePart(g, "Real", power);
  Value ofZero = g.cast(isOne, Builder::elementOf(real));
  return one(g, makeComplex(g, g.select(isZero, ofZero, real), g.select(isZero, zero, makePart(g, "Imag", power))));
}

// ---- Fourier transforms ---------------------------------------------------------------------------------------------

Converter::Result Converter::fourierTransform(Operation *op, Values operands, Builder &g) {
  StringRef kind = getKeyword(op, "fft_type");
  const Ints lengths = getInts(op, "fft_length");
  const size_t rank = lengths.size();
  FailureOr<Dims> sizes = g.getShape(operands[0]);
  if (failed(sizes))
    return failure();
  if (!llvm::is_contained({"FFT", "IFFT", "RFFT", "IRFFT"}, kind) || rank < 1 || rank > 3 || sizes->size() < rank ||
      llvm::any_of(lengths, [](int64_t length) { return length < 1; }))
    return fail(g, "is no Fourier transform of one, two or three axes");
  const bool isReal = kind.contains("RFFT"), isInverse = kind.starts_with("I");
  const bool takesComplex = llvm::isa<ComplexType>(Builder::elementOf(operands[0]));
  if (takesComplex != (!isReal || isInverse))
    return fail(g, "transforms elements of type " + Twine(takesComplex ? "complex" : "real") +
                       ", which its kind does not take");
  Dims made(*sizes);
  for (auto [number, length] : llvm::enumerate(lengths)) {
    Dim &size = made[sizes->size() - rank + number];
    const bool isHalf = isReal && number + 1 == rank;
    if (!(size == Dim(isHalf && isInverse ? length / 2 + 1 : length)))
      return fail(g, "transforms axes of other lengths than its fft_length says");
    size = Dim(isHalf && !isInverse ? length / 2 + 1 : length);
  }
  Type part = getPartType(Builder::elementOf(operands[0])), complex = ComplexType::get(part);
  SmallVector<NamedAttribute> types = {g.attribute("Tcomplex", TypeAttr::get(complex))};
  if (isReal) {
    operands.push_back(g.integers(lengths));
    types.push_back(g.attribute("Treal", TypeAttr::get(part)));
  }
  std::string name = (kind + (rank == 1 ? "" : rank == 2 ? "2D" : "3D")).str();
  return one(g, makeOpaque(g, name, operands, made, isReal && isInverse ? part : complex, types));
}

} // namespace distc::stablehlo

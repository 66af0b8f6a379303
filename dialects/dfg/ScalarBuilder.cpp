//===- ScalarBuilder.cpp - Arithmetic on one element ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace distc::dfg {

static bool isFloat(Value x) { return llvm::isa<FloatType>(x.getType()); }
static bool isBool(Type type) { return type.isInteger(1); }
static bool isUnsigned(Type type) { return type.isUnsignedInteger(); }

Value ScalarBuilder::constant(Type type, double value) {
  TypedAttr attr;
  if (auto floatType = llvm::dyn_cast<FloatType>(type))
    attr = builder.getFloatAttr(floatType, value);
  else if (isBool(type))
    attr = builder.getBoolAttr(value != 0);
  else
    attr = builder.getIntegerAttr(type, static_cast<int64_t>(value));
  return arith::ConstantOp::create(builder, loc, attr);
}

Value ScalarBuilder::lowest(Type type) {
  if (auto floatType = llvm::dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(floatType, APFloat::getInf(floatType.getFloatSemantics(), true)));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = isUnsigned(type) || isBool(type) ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

Value ScalarBuilder::highest(Type type) {
  if (auto floatType = llvm::dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(floatType, APFloat::getInf(floatType.getFloatSemantics())));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = isUnsigned(type) || isBool(type) ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}

static Value finiteExtreme(ScalarBuilder &s, FloatType type, bool negative) {
  return arith::ConstantOp::create(
      s.builder, s.loc, s.builder.getFloatAttr(type, APFloat::getLargest(type.getFloatSemantics(), negative)));
}
Value ScalarBuilder::lowestFinite(Type type) {
  auto floatType = llvm::dyn_cast<FloatType>(type);
  return floatType ? finiteExtreme(*this, floatType, true) : lowest(type);
}
Value ScalarBuilder::highestFinite(Type type) {
  auto floatType = llvm::dyn_cast<FloatType>(type);
  return floatType ? finiteExtreme(*this, floatType, false) : highest(type);
}

Value ScalarBuilder::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(builder, loc, x, y);
  return arith::AddIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::sub(Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(builder, loc, x, y);
  return arith::SubIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(builder, loc, x, y);
  return arith::MulIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::div(Value x, Value y) {
  if (isFloat(x))
    return arith::DivFOp::create(builder, loc, x, y);
  return arith::DivSIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::truncateMod(Value x, Value y) {
  if (isFloat(x))
    return arith::RemFOp::create(builder, loc, x, y);
  return arith::RemSIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::floorDiv(Value x, Value y) {
  if (isFloat(x))
    return math::FloorOp::create(builder, loc, div(x, y));
  return arith::FloorDivSIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::floorMod(Value x, Value y) {
  // The remainder takes the divisor's sign.
  Value remainder = truncateMod(x, y);
  Value zero = constant(x.getType(), 0.0);
  Value differs = bitXor(less(remainder, zero), less(y, zero));
  return select(bitAnd(notEqual(remainder, zero), differs), add(remainder, y), remainder);
}
Value ScalarBuilder::pow(Value x, Value y) {
  if (isFloat(x))
    return math::PowFOp::create(builder, loc, x, y);
  return math::IPowIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::neg(Value x) {
  if (isFloat(x))
    return arith::NegFOp::create(builder, loc, x);
  return sub(constant(x.getType(), 0.0), x);
}
Value ScalarBuilder::abs(Value x) {
  if (isFloat(x))
    return math::AbsFOp::create(builder, loc, x);
  return math::AbsIOp::create(builder, loc, x);
}
Value ScalarBuilder::sign(Value x) {
  // The last alternative is x itself, so that NaN and -0 are handed on.
  Value zero = constant(x.getType(), 0.0);
  Value one = constant(x.getType(), 1.0);
  Value minusOne = constant(x.getType(), -1.0);
  return select(less(zero, x), one, select(less(x, zero), minusOne, x));
}
Value ScalarBuilder::maximum(Value x, Value y) {
  if (isFloat(x))
    return arith::MaximumFOp::create(builder, loc, x, y);
  return arith::MaxSIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::minimum(Value x, Value y) {
  if (isFloat(x))
    return arith::MinimumFOp::create(builder, loc, x, y);
  return arith::MinSIOp::create(builder, loc, x, y);
}
Value ScalarBuilder::roundEven(Value x) {
  if (isFloat(x))
    return math::RoundEvenOp::create(builder, loc, x);
  return x;
}
Value ScalarBuilder::sigmoid(Value x) {
  Value one = constant(x.getType(), 1.0);
  return div(one, add(one, math<math::ExpOp>(neg(x))));
}
Value ScalarBuilder::softplus(Value x) {
  // max(x, 0) + log1p(exp(-|x|)) neither overflows nor loses the small ones.
  return add(maximum(x, constant(x.getType(), 0.0)), math<math::Log1pOp>(math<math::ExpOp>(neg(abs(x)))));
}

Value ScalarBuilder::equal(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, x, y);
}
Value ScalarBuilder::notEqual(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, x, y);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, x, y);
}
Value ScalarBuilder::less(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, x, y);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, x, y);
}
Value ScalarBuilder::lessEqual(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, x, y);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, x, y);
}
Value ScalarBuilder::isInf(Value x) { return equal(abs(x), highest(x.getType())); }
Value ScalarBuilder::isFinite(Value x) { return less(abs(x), highest(x.getType())); }
Value ScalarBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(builder, loc, condition, x, y);
}
Value ScalarBuilder::unlessZero(Value x, Value value) {
  Value zero = constant(x.getType(), 0.0);
  return select(equal(x, zero), zero, value);
}

Value ScalarBuilder::bitAnd(Value x, Value y) { return arith::AndIOp::create(builder, loc, x, y); }
Value ScalarBuilder::bitOr(Value x, Value y) { return arith::OrIOp::create(builder, loc, x, y); }
Value ScalarBuilder::bitXor(Value x, Value y) { return arith::XOrIOp::create(builder, loc, x, y); }
Value ScalarBuilder::bitNot(Value x) {
  return bitXor(x, isBool(x.getType()) ? constant(x.getType(), 1.0) : constant(x.getType(), -1.0));
}
/// By as many bits as there can be: by less than none TensorFlow does not shift, by more than all but one by those.
static Value bitsOf(ScalarBuilder &s, Value x, Value y) {
  return s.maximum(s.minimum(y, s.constant(y.getType(), x.getType().getIntOrFloatBitWidth() - 1)),
                   s.constant(y.getType(), 0));
}

Value ScalarBuilder::shiftLeft(Value x, Value y) { return arith::ShLIOp::create(builder, loc, x, bitsOf(*this, x, y)); }
Value ScalarBuilder::shiftRight(Value x, Value y) {
  return arith::ShRSIOp::create(builder, loc, x, bitsOf(*this, x, y));
}

Value ScalarBuilder::cast(Value x, Type type) {
  Type from = x.getType();
  if (from == type)
    return x;
  if (isBool(type))
    return notEqual(x, constant(from, 0.0));
  auto fromFloat = llvm::dyn_cast<FloatType>(from), toFloat = llvm::dyn_cast<FloatType>(type);
  // What is narrower than float32 is reached through it.
  Type single = builder.getF32Type();
  if (fromFloat && fromFloat.getWidth() < 32 && type != single)
    return cast(arith::ExtFOp::create(builder, loc, single, x), type);
  if (toFloat && toFloat.getWidth() < 32 && from != single)
    return cast(cast(x, single), type);
  if (fromFloat && toFloat) {
    if (toFloat.getWidth() > fromFloat.getWidth())
      return arith::ExtFOp::create(builder, loc, type, x);
    return arith::TruncFOp::create(builder, loc, type, x);
  }
  if (fromFloat) {
    if (type.getIntOrFloatBitWidth() < 32)
      return cast(cast(x, builder.getI32Type()), type);
    // The conversion alone says nothing of what the integer cannot hold.
    double bound = std::ldexp(1.0, static_cast<int>(type.getIntOrFloatBitWidth()) - 1);
    Value isHeld = bitAnd(lessEqual(constant(from, -bound), x), less(x, constant(from, bound)));
    return select(isHeld, arith::FPToSIOp::create(builder, loc, type, x), lowest(type));
  }
  bool isUnsignedSource = isBool(from) || isUnsigned(from);
  if (toFloat) {
    if (isUnsignedSource)
      return arith::UIToFPOp::create(builder, loc, type, x);
    return arith::SIToFPOp::create(builder, loc, type, x);
  }
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = type.getIntOrFloatBitWidth();
  if (toWidth < fromWidth)
    return arith::TruncIOp::create(builder, loc, type, x);
  if (isUnsignedSource)
    return arith::ExtUIOp::create(builder, loc, type, x);
  return arith::ExtSIOp::create(builder, loc, type, x);
}

Value ScalarBuilder::bitcast(Value x, Type type) {
  return x.getType() == type ? x : arith::BitcastOp::create(builder, loc, type, x);
}

} // namespace distc::dfg

//===- ScalarBuilder.h - Arithmetic on one element -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What the bodies of element-wise operations, reductions and updates in ODS are
// written with: arithmetic on scalars of any element type, by arith and math
// operations. The meaning is TensorFlow's (integer division rounds as the op
// says, maximum and minimum hand on NaN).
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SCALARBUILDER_H
#define DISTC_DIALECTS_DFG_SCALARBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace distc::dfg {

class ScalarBuilder {
public:
  using Value = mlir::Value;

  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// `value` as an element of `type`; bool is true for anything but zero.
  Value constant(mlir::Type type, double value);
  /// The smallest and the largest value of `type` (infinities for floats).
  Value lowest(mlir::Type type);
  Value highest(mlir::Type type);
  /// The same without infinities.
  Value lowestFinite(mlir::Type type);
  Value highestFinite(mlir::Type type);

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Floats: division. Integers: rounds to zero.
  Value div(Value x, Value y);
  Value truncateDiv(Value x, Value y) { return div(x, y); }
  Value truncateMod(Value x, Value y);
  Value floorDiv(Value x, Value y);
  Value floorMod(Value x, Value y);
  Value pow(Value x, Value y);
  Value neg(Value x);
  Value abs(Value x);
  Value sign(Value x);
  Value maximum(Value x, Value y);
  Value minimum(Value x, Value y);
  Value roundEven(Value x);
  Value sigmoid(Value x);
  Value softplus(Value x);

  // Special functions of floats (SpecialFunctions.cpp).
  Value lgamma(Value x);
  Value digamma(Value x);
  Value erfinv(Value x);
  Value ndtri(Value x);
  /// A function of the runtime's library, `drt_special_NAME` of drt.h, of operands of one type.
  Value special(llvm::StringRef name, mlir::ValueRange operands);
  /// The next float from x on towards y.
  Value nextAfter(Value x, Value y);

  Value equal(Value x, Value y);
  Value notEqual(Value x, Value y);
  Value less(Value x, Value y);
  Value lessEqual(Value x, Value y);
  Value greater(Value x, Value y) { return less(y, x); }
  Value isInf(Value x);
  Value isFinite(Value x);
  Value select(Value condition, Value x, Value y);
  /// `value`, but 0 where x is 0.
  Value unlessZero(Value x, Value value);

  Value bitAnd(Value x, Value y);
  Value bitOr(Value x, Value y);
  Value bitXor(Value x, Value y);
  Value bitNot(Value x);
  Value shiftLeft(Value x, Value y);
  Value shiftRight(Value x, Value y);

  /// TensorFlow's Cast: floats truncate to integers, anything but zero is true. NaN and what an integer cannot hold
  /// become what x86's instructions give, which is TensorFlow's on CPUs: the lowest int64 or int32, and the low bits of
  /// that int32 for what is narrower.
  Value cast(Value x, mlir::Type type);

  /// The same bits as another type of that width.
  Value bitcast(Value x, mlir::Type type);

  /// One operation of the math dialect.
  template <typename Op> Value math(Value x) { return Op::create(builder, loc, x); }
  template <typename Op> Value math2(Value x, Value y) { return Op::create(builder, loc, x, y); }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SCALARBUILDER_H

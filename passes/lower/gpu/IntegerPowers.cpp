//===- IntegerPowers.cpp - Powers of integers as loops ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/IntegerPowers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace distc {
namespace {

struct ExpandIntegerPower : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IPowIOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isInteger())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, rewriter.getIntegerAttr(type, value));
    };
    auto is = [&](arith::CmpIPredicate predicate, Value left, Value right) -> Value {
      return arith::CmpIOp::create(b, predicate, left, right);
    };
    Value zero = number(0), one = number(1), base = op.getLhs(), exponent = op.getRhs();
    // a^-n is a fraction but for a = 1 and a = -1, whose powers of n are the same.
    Value negative = is(arith::CmpIPredicate::slt, exponent, zero);
    Value size = arith::SelectOp::create(b, negative, arith::SubIOp::create(b, zero, exponent), exponent);
    const SmallVector<Type> types(3, type);
    const SmallVector<Location> locations(3, op.getLoc());
    auto loop = scf::WhileOp::create(b, types, ValueRange{one, base, size});
    {
      OpBuilder::InsertionGuard guard(b);
      Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
      // Unsigned: the least number's size is itself.
      scf::ConditionOp::create(b, is(arith::CmpIPredicate::ne, before->getArgument(2), zero), before->getArguments());
      Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
      Value power = after->getArgument(0), square = after->getArgument(1), rest = after->getArgument(2);
      Value odd = is(arith::CmpIPredicate::ne, arith::AndIOp::create(b, rest, one), zero);
      Value next = arith::SelectOp::create(b, odd, arith::MulIOp::create(b, power, square), power);
      scf::YieldOp::create(
          b, ValueRange{next, arith::MulIOp::create(b, square, square), arith::ShRUIOp::create(b, rest, one)});
    }
    Value unit = arith::OrIOp::create(b, is(arith::CmpIPredicate::eq, base, one),
                                      is(arith::CmpIPredicate::eq, base, number(-1)));
    Value fraction = arith::AndIOp::create(
        b, negative, arith::XOrIOp::create(b, unit, arith::ConstantOp::create(b, rewriter.getBoolAttr(true))));
    rewriter.replaceOp(op, arith::SelectOp::create(b, fraction, zero, loop.getResult(0)));
    return success();
  }
};

} // namespace

void populateIntegerPowerPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandIntegerPower>(patterns.getContext());
}

} // namespace distc

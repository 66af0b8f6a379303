//===- NumberRange.cpp - What numbers may be ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NumberRange.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::dfg {

/// Whether x < y (x <= y) for all numbers of the ranges, or for none.
static std::optional<bool> isLess(NumberRange x, NumberRange y, bool orEqual) {
  if (orEqual ? x.most <= y.least : x.most < y.least)
    return true;
  if (orEqual ? x.least > y.most : x.least >= y.most)
    return false;
  return std::nullopt;
}

static std::optional<bool> areEqual(NumberRange x, NumberRange y) {
  if (x.isOne() && y.isOne())
    return x.least == y.least;
  return x.most < y.least || y.most < x.least ? std::optional(false) : std::nullopt;
}

static std::optional<bool> isNot(std::optional<bool> holds) { return holds ? std::optional(!*holds) : holds; }

/// Whether a cast gives each number as it is: to integers at least those that sizes are.
static bool keepsNumbers(CastOp cast) {
  Type from = getElementTypeOrSelf(cast->getOperand(0)), to = getElementTypeOrSelf(cast->getResult(0));
  if (llvm::isa<FloatType>(to))
    return llvm::isa<FloatType>(from) || from.isInteger();
  return from.isInteger() && to.isInteger() &&
         to.getIntOrFloatBitWidth() >= std::min(32u, from.getIntOrFloatBitWidth());
}

NumberRange inferNumberRange(Operation *op, llvm::function_ref<NumberRange(Value)> rangeOf) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return {};
  auto at = [&](unsigned operand) { return rangeOf(op->getOperand(operand)); };
  // One that is so decides, all others together.
  auto joined = [&](bool decides) -> std::optional<bool> {
    bool areKnown = true;
    for (Value operand : op->getOperands()) {
      NumberRange x = rangeOf(operand);
      if (x.isOne() && (x.least != 0) == decides)
        return decides;
      areKnown &= x.isOne();
    }
    return areKnown ? std::optional(!decides) : std::nullopt;
  };
  auto ofTruth = [](std::optional<bool> holds) { return NumberRange::ofTruth(holds); };
  if (op->hasTrait<Forwards>())
    return at(0);
  return llvm::TypeSwitch<Operation *, NumberRange>(op)
      .Case<ReshapeOp, SqueezeOp, ExpandDimsOp, StridedSliceOp, SliceOp, TransposeOp, TileOp, GatherV2Op, MaxOp, MinOp,
            ReverseV2Op>([&](auto) { return at(0); })
      .Case([&](CastOp cast) { return keepsNumbers(cast) ? at(0) : NumberRange(); })
      .Case<LessOp>([&](auto) { return ofTruth(isLess(at(0), at(1), false)); })
      .Case<LessEqualOp>([&](auto) { return ofTruth(isLess(at(0), at(1), true)); })
      .Case<GreaterOp>([&](auto) { return ofTruth(isLess(at(1), at(0), false)); })
      .Case<GreaterEqualOp>([&](auto) { return ofTruth(isLess(at(1), at(0), true)); })
      .Case<EqualOp>([&](auto) { return ofTruth(areEqual(at(0), at(1))); })
      .Case<NotEqualOp>([&](auto) { return ofTruth(isNot(areEqual(at(0), at(1)))); })
      .Case<LogicalAndOp>([&](auto) { return ofTruth(joined(false)); })
      .Case<LogicalOrOp>([&](auto) { return ofTruth(joined(true)); })
      .Case<LogicalNotOp>([&](auto) {
        NumberRange x = at(0);
        return ofTruth(x.isOne() ? std::optional(x.least == 0) : std::nullopt);
      })
      .Case<AddOp, AddV2Op>([&](auto) {
        NumberRange x = at(0), y = at(1);
        return NumberRange{x.least + y.least, x.most + y.most};
      })
      .Case<SubOp>([&](auto) {
        NumberRange x = at(0), y = at(1);
        return NumberRange{x.least - y.most, x.most - y.least};
      })
      .Case<MulOp>([&](auto) {
        NumberRange x = at(0), y = at(1);
        if (x.isOne() && y.isOne())
          return NumberRange::of(x.least * y.least);
        return x.least >= 0 && y.least >= 0 ? NumberRange{x.least * y.least} : NumberRange();
      })
      .Case<FloorDivOp>([&](auto) {
        NumberRange x = at(0), y = at(1);
        return x.least >= 0 && y.isOne() && y.least > 0 ? NumberRange{std::floor(x.least / y.least)} : NumberRange();
      })
      .Case<MinimumOp>([&](auto) {
        NumberRange x = at(0), y = at(1);
        return NumberRange{std::min(x.least, y.least), std::min(x.most, y.most)};
      })
      .Case<MaximumOp>([&](auto) {
        NumberRange x = at(0), y = at(1);
        return NumberRange{std::max(x.least, y.least), std::max(x.most, y.most)};
      })
      .Case<SelectOp, SelectV2Op>([&](auto) { return hull(at(1), at(2)); })
      .Default([](Operation *) { return NumberRange(); });
}

} // namespace distc::dfg

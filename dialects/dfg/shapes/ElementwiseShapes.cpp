//===- ElementwiseShapes.cpp - Shapes and elements of element-wise operations --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dfg/shapes/ShapeSupport.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::dfg::shapes {

/// Whether x < y (or x <= y): 1 or 0 where it is the same for every b.
static Dim isLess(Dim x, Dim y, bool orEqual) {
  if (x.isBound() || y.isBound())
    return {};
  // x < y where y is at least x + 1, and not where it is at most x.
  Dim last = orEqual ? x - 1 : x;
  if (max(last + 1, y) == y)
    return 1;
  return min(last, y) == y ? Dim(0) : Dim();
}

/// Whether x is y: 1 where it is for every b, 0 where it is for none.
static Dim isEqual(Dim x, Dim y) {
  if (x.isBound() || y.isBound())
    return {};
  if (x == y)
    return 1;
  return isLess(x, y, false) == Dim(1) || isLess(y, x, false) == Dim(1) ? Dim(0) : Dim();
}

/// Rounded towards zero.
static Dim truncateDiv(Dim x, Dim y) {
  if (x.isBound() || y.isBound())
    return floorDiv(x, y); // of sizes
  auto isNegative = [](Dim z) { return isLess(z, Dim(0), false); };
  Dim less = isNegative(x), by = isNegative(y);
  if (!less.isConstant() || !by.isConstant())
    return {};
  Dim quotient = floorDiv(less == Dim(1) ? Dim(0) - x : x, by == Dim(1) ? Dim(0) - y : y);
  return less == by ? quotient : Dim(0) - quotient;
}

/// The elements of an integer result, where the operands' are known.
static std::optional<Dim> evaluate(Operation *op, ArrayRef<Dim> x) {
  if (op->hasTrait<Forwards>())
    return x[0];
  return llvm::TypeSwitch<Operation *, std::optional<Dim>>(op)
      .Case<AddOp, AddV2Op>([&](auto) { return x[0] + x[1]; })
      .Case<SubOp>([&](auto) { return x[0] - x[1]; })
      .Case<MulOp>([&](auto) { return x[0] * x[1]; })
      .Case<NegOp>([&](auto) { return Dim(0) - x[0]; })
      .Case<SquareOp>([&](auto) { return x[0] * x[0]; })
      .Case<FloorDivOp>([&](auto) { return floorDiv(x[0], x[1]); })
      .Case<DivOp, TruncateDivOp>([&](auto) { return truncateDiv(x[0], x[1]); })
      .Case<FloorModOp>([&](auto) { return floorMod(x[0], x[1]); })
      .Case<ModOp>([&](auto) { return x[0] - truncateDiv(x[0], x[1]) * x[1]; })
      .Case<SignOp>([&](auto) { return isLess(Dim(0), x[0], false) - isLess(x[0], Dim(0), false); })
      .Case<MaximumOp>([&](auto) { return max(x[0], x[1]); })
      .Case<MinimumOp>([&](auto) { return min(x[0], x[1]); })
      .Case<ZerosLikeOp>([&](auto) { return Dim(0); })
      .Case<OnesLikeOp>([&](auto) { return Dim(1); })
      .Case<AddNOp>([&](auto) {
        Dim sum = 0;
        for (Dim next : x)
          sum = sum + next;
        return sum;
      })
      .Case<EqualOp>([&](auto) { return isEqual(x[0], x[1]); })
      .Case<NotEqualOp>([&](auto) { return Dim(1) - isEqual(x[0], x[1]); })
      .Case<LessOp>([&](auto) { return isLess(x[0], x[1], false); })
      .Case<LessEqualOp>([&](auto) { return isLess(x[0], x[1], true); })
      .Case<GreaterOp>([&](auto) { return isLess(x[1], x[0], false); })
      .Case<GreaterEqualOp>([&](auto) { return isLess(x[1], x[0], true); })
      .Case<LogicalNotOp>([&](auto) { return x[0].isConstant() ? Dim(x[0] == Dim(0)) : Dim(); })
      .Case<LogicalAndOp>([&](auto) { return min(x[0], x[1]); })
      .Case<LogicalOrOp>([&](auto) { return max(x[0], x[1]); })
      .Case<SelectV2Op, SelectOp>([&](auto) {
        if (x[0].isConstant())
          return x[0].getConstant() ? x[1] : x[2];
        return x[1] == x[2] ? x[1] : Dim();
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// min(n, max(n, x)) is n whatever the data say of x: how many bins there are at most, and at least.
static std::optional<int64_t> getOnlyValue(Operation *op, const ShapeContext &context) {
  if (!llvm::isa<MinimumOp>(op))
    return std::nullopt;
  for (unsigned side : {0, 1}) {
    std::optional<int64_t> most = context.getConstant(op->getOperand(side));
    auto other = op->getOperand(1 - side).getDefiningOp<MaximumOp>();
    if (most && other && llvm::any_of(other->getOperands(), [&](Value least) {
          std::optional<int64_t> known = context.getConstant(least);
          return known && *known >= *most;
        }))
      return most;
  }
  return std::nullopt;
}

static void evaluateElements(Operation *op, ShapeContext &context, ArrayRef<Dim> sizes) {
  if (!isInteger(op->getResult(0)))
    return;
  Dim count = product(sizes);
  if (!count.isConstant() || count.getConstant() < 0 || count.getConstant() > ShapeContext::kMaxElements)
    return;
  if (count.getConstant() == 1)
    if (std::optional<int64_t> only = getOnlyValue(op, context))
      return context.setElements(op->getResult(0), {Dim(*only)});
  SmallVector<Dims> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Dims> elements = context.getElements(operand);
    // Vectors of one length, and scalars beside them.
    if (!elements || (elements->size() != 1 && static_cast<int64_t>(elements->size()) != count.getConstant()))
      return;
    operands.push_back(std::move(*elements));
  }
  Dims result;
  for (int64_t i = 0; i < count.getConstant(); ++i) {
    Dims arguments;
    for (const Dims &elements : operands)
      arguments.push_back(elements[elements.size() == 1 ? 0 : i]);
    std::optional<Dim> element = evaluate(op, arguments);
    if (!element)
      return;
    result.push_back(*element);
  }
  context.setElements(op->getResult(0), std::move(result));
}

LogicalResult broadcast(Operation *op, ShapeContext &context) {
  Dims sizes;
  for (Value operand : op->getOperands()) {
    std::optional<Dims> next = context.getShape(operand);
    if (!next)
      return success();
    FailureOr<Dims> both = broadcastShapes(op, sizes, *next);
    if (failed(both))
      return failure();
    sizes = std::move(*both);
  }
  evaluateElements(op, context, sizes);
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult alike(Operation *op, ShapeContext &context) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("takes nothing");
  auto first = context.getShape(op->getOperand(0));
  for (Value operand : op->getOperands().drop_front())
    if (auto next = context.getShape(operand); first && next && !fits(*first, *next))
      return op->emitOpError() << "takes operands of shapes " << print(*first) << " and " << print(*next)
                               << ", which must be equal";
  return broadcast(op, context);
}

LogicalResult predicate(Operation *op, ShapeContext &context) { return broadcast(op, context); }
LogicalResult select(Operation *op, ShapeContext &context) { return broadcast(op, context); }

LogicalResult selectRows(Operation *op, ShapeContext &context) {
  auto condition = context.getShape(op->getOperand(0)), chosen = context.getShape(op->getOperand(1)),
       other = context.getShape(op->getOperand(2));
  if (chosen && other && !fits(*chosen, *other))
    return op->emitOpError() << "chooses between shapes " << print(*chosen) << " and " << print(*other);
  // A scalar, one of each row, or one of each element.
  if (condition && chosen && !condition->empty() && !fits(*condition, *chosen) &&
      !(condition->size() == 1 && !chosen->empty() && fits((*condition)[0], (*chosen)[0])))
    return op->emitOpError() << "chooses by a condition of shape " << print(*condition) << " between shapes "
                             << print(*chosen);
  if (auto shape = context.getShape(op->getOperand(1))) {
    evaluateElements(op, context, *shape);
    context.setShape(op->getResult(0), *shape);
  }
  return success();
}

LogicalResult cast(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  // Elements are followed through floats too (b as the divisor of a mean), exactly where they are integers.
  auto elements = context.getElements(op->getOperand(0));
  if (elements && getElementTypeOrSelf(op->getResult(0)).isInteger(1))
    for (Dim &element : *elements)
      if (element.isConstant())
        element = Dim(element.getConstant() != 0);
  if (elements)
    context.setElements(op->getResult(0), std::move(*elements));
  else if (Type type = getElementTypeOrSelf(op->getResult(0)); type.isInteger(32) || type.isInteger(64))
    if (std::optional<double> known = evaluateNumber(op->getOperand(0), context); known && std::abs(*known) < (1 << 30))
      context.setElements(op->getResult(0), {Dim(static_cast<int64_t>(*known))});
  return success();
}

} // namespace distc::dfg::shapes

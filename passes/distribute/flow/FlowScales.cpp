//===- FlowScales.cpp - How much larger values are of the whole batch -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/flow/OperandRoles.h"
#include <cmath>

using namespace mlir;

namespace distc {

/// As far as it is known, the scale of op's results and whether they are zero. `contracts`: they are sums over the
/// batch.
Flow BatchFlow::estimateScale(Operation *op, bool contracts) const {
  Flow result;
  if (isZeroConstant(op)) {
    result.zero = true;
    return result;
  }
  SmallVector<Value> data = getData(op);
  dfg::Linearity linearity = getLinearity(op);
  // Integers may be sizes and axes, but sums over the batch are none.
  auto estimate = [&](ArrayRef<Value> values) -> std::optional<int> {
    for (Value value : values)
      if (const Flow &flow = get(value);
          (isFloatOrUnknown(value) || flow.kind == Flow::Partial) && !flow.zero && flow.scale != 0)
        return std::nullopt;
    return 0;
  };
  auto hasOneElement = [&](Value value) {
    auto sizes = shapes.getShape(value);
    return sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size == dfg::Dim(1); });
  };
  switch (linearity) {
  case dfg::Linearity::Joint: {
    bool first = true;
    result.zero = !data.empty();
    for (Value operand : data) {
      const Flow &flow = get(operand);
      if (flow.zero)
        continue;
      result.zero = false;
      result.scale = first || result.scale == flow.scale ? flow.scale : std::nullopt;
      first = false;
    }
    break;
  }
  case dfg::Linearity::Each:
    for (Value operand : data) {
      result.scale = addScales(result.scale, get(operand).scale);
      result.zero |= get(operand).zero;
    }
    break;
  case dfg::Linearity::First:
  case dfg::Linearity::Last: {
    if (data.empty())
      break;
    bool first = linearity == dfg::Linearity::First;
    Value linear = first ? data.front() : data.back();
    ArrayRef<Value> others = first ? ArrayRef(data).drop_front() : ArrayRef(data).drop_back();
    result.zero = get(linear).zero;
    result.scale = get(linear).scale;
    if (op->hasTrait<dfg::Divides>() && others.size() == 1) {
      std::optional<int> divisor = get(others.front()).scale;
      result.scale = addScales(result.scale, divisor ? std::optional<int>(-*divisor) : std::nullopt);
    } else if (!estimate(others)) {
      result.scale = std::nullopt;
    }
    break;
  }
  case dfg::Linearity::None:
    if (llvm::isa<dfg::SquareOp, dfg::L2LossOp>(op))
      result.scale = addScales(get(data.front()).scale, get(data.front()).scale);
    else if (op->hasTrait<dfg::Reduces>() && hasOneElement(op->getOperand(0)))
      result.scale = get(op->getOperand(0)).scale; // of one element
    else
      result.scale = estimate(llvm::to_vector(op->getOperands()));
    break;
  }
  if (!contracts)
    return result;
  // The sum has N times the terms; a mean divides by N times as many, if it divides by a multiple of b.
  if (!llvm::isa<dfg::MeanOp>(op)) {
    result.scale = addScales(result.scale, 1);
  } else if (auto sizes = shapes.getShape(op->getOperand(0))) {
    for (dfg::Dim size : *sizes)
      if (size.dependsOnBatch() && !size.isMultipleOfBatch())
        result.scale = std::nullopt;
  }
  return result;
}

/// The scale that all of `values` but the zeros have; none where they differ.
static std::optional<int> getCommonScale(ArrayRef<Value> values, const BatchFlow &flow, bool &zero) {
  std::optional<int> common;
  bool first = true;
  for (Value value : values) {
    const Flow &at = flow.get(value);
    if (at.zero)
      continue;
    if (!at.scale || (!first && at.scale != common))
      return std::nullopt;
    common = at.scale;
    first = false;
  }
  zero = first && !values.empty();
  return first ? std::optional<int>(0) : common;
}

/// Whether op gives constants on as they are, or some of their elements: they are numbers of the same sizes still.
static bool keepsConstants(Operation *op) {
  return choosesElements(op) || op->hasTrait<dfg::Fills>() || op->hasTrait<dfg::Repeats>();
}

/// The scale of op's result, before a sum over the batch; none where it has none.
std::optional<int> BatchFlow::getScale(Operation *op, ArrayRef<Value> linear, ArrayRef<Value> others,
                                       bool &zero) const {
  bool zeroOthers = false;
  dfg::Linearity linearity = getLinearity(op);
  // A number that counts somewhere is larger of the whole batch: a product is as well; of what else is made of it, but
  // for another constant, nothing is known.
  auto isOfCounts = [&](Value value) { return fixed && get(value).scale == 0 && fixed.getScale(value) != 0; };
  // What divides rows that differ is a number of its own, but where their gradients are copies that it counts.
  auto isRows = [&](Value value) { return get(value).kind == Flow::Sharded && !get(value).batch.uniform; };
  if (op->hasTrait<dfg::Divides>() && linear.size() == 1) {
    const Flow &dividend = get(linear.front()), &divisor = get(others.front());
    zero = dividend.zero;
    if (!divisor.scale || (!zero && !dividend.scale) || (fixed && fixed.isAmbiguous(others.front())))
      return std::nullopt;
    const bool counts =
        fixed && fixed.counts(others.front()) && (!isRows(linear.front()) || fixed.countsCopies(others.front()));
    // What is made of a number that counts, and counts nothing itself.
    if (isOfCounts(others.front()) && !fixed.getScale(others.front()))
      return std::nullopt;
    std::optional<int> power = isOfCounts(linear.front()) ? fixed.getScale(linear.front()) : 0;
    int count = counts && *divisor.scale == 0 ? 1 : *divisor.scale;
    return zero ? 0 : addScales(power, *dividend.scale - count);
  }
  if (!llvm::isa<dfg::MulOp>(op) && !keepsConstants(op) && !(fixed && fixed.isComputed(op)) &&
      (llvm::any_of(linear, isOfCounts) || llvm::any_of(others, isOfCounts)))
    return std::nullopt;
  std::optional<int> otherScale = getCommonScale(others, *this, zeroOthers);
  if (linearity == dfg::Linearity::None) {
    std::optional<double> degree = getDegree(op);
    if (!otherScale || (!degree && *otherScale != 0))
      return std::nullopt;
    double scale = degree ? *degree * *otherScale : 0;
    return scale == std::floor(scale) ? std::optional<int>(scale) : std::nullopt;
  }
  if (otherScale != 0)
    return std::nullopt;
  if (linearity == dfg::Linearity::Joint)
    return getCommonScale(linear, *this, zero);
  // Linear in each of them: their product.
  std::optional<int> scale = 0;
  for (Value value : linear) {
    zero |= get(value).zero;
    scale = addScales(scale, get(value).scale);
    if (!llvm::isa<dfg::MulOp>(op) || !isOfCounts(value))
      continue;
    if (std::optional<int> power = fixed.getScale(value); power != -1)
      scale = addScales(scale, power);
    else if (llvm::none_of(linear, isRows))
      scale = addScales(scale, -1);
  }
  return zero ? std::optional<int>(0) : scale;
}

} // namespace distc

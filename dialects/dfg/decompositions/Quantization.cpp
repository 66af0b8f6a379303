//===- Quantization.cpp - Values rounded as if they were quantized ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Training that knows of quantization. What TensorFlow's fake_quant_ops_functor.h
// computes, in its order: the range is nudged so that 0 is one of its steps, and what
// lies outside hands its gradient on to the range's ends.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include <cmath>

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// A range of steps, one or one a channel.
struct Steps {
  Value low, high; // nudged
  Value size, perUnit;
  Value isEmpty; // min and max are 0
};

Steps nudge(Operation *op, GraphBuilder &g, Value min, Value max) {
  const int64_t bits = getNumber(op, "num_bits");
  if (bits < 2 || bits > 16)
    return (void)g.fail("num_bits must be between 2 and 16"), Steps();
  Type element = g.builder.getF32Type();
  Value first = g.scalar(element, getFlag(op, "narrow_range") ? 1 : 0),
        last = g.scalar(element, static_cast<double>((int64_t(1) << bits) - 1)), zero = g.scalar(element, 0);
  Value count = g.sub(last, first), extent = g.sub(max, min);
  Steps steps;
  steps.size = g.div(extent, count);
  steps.perUnit = g.div(count, extent);
  Value place = g.sub(first, g.div(min, steps.size)), down = g.make<FloorOp>(place);
  // A half is rounded up, also one that is lost where it is added.
  Value up = g.lessEqual(g.scalar(element, 0.5), g.sub(place, down));
  Value rounded = g.add(down, g.cast(up, element));
  Value atZero = g.select(g.less(place, first), first, g.select(g.less(last, place), last, rounded));
  steps.low = g.mul(g.sub(first, atZero), steps.size);
  steps.high = g.mul(g.sub(last, atZero), steps.size);
  steps.isEmpty = g.both(g.equal(min, zero), g.equal(max, zero));
  return steps;
}

/// Min and max, which are attributes or operands.
std::pair<Value, Value> getRange(Operation *op, GraphBuilder &g, unsigned first) {
  if (op->getNumOperands() > first)
    return {op->getOperand(first), op->getOperand(first + 1)};
  Type element = g.builder.getF32Type();
  return {g.scalar(element, getReal(op, "min")), g.scalar(element, getReal(op, "max"))};
}

} // namespace

Result fakeQuant(Operation *op, GraphBuilder &g) {
  auto [min, max] = getRange(op, g, 1);
  Steps steps = nudge(op, g, min, max);
  Type element = g.builder.getF32Type();
  Value half = g.scalar(element, 0.5);
  Value atZero = g.make<FloorOp>(g.add(g.mul(g.neg(steps.low), steps.perUnit), half));
  Value inside = g.maximum(g.minimum(op->getOperand(0), steps.high), steps.low);
  Value shifted = g.sub(inside, steps.low);
  // The kernel of a range that is one tensor divides, those of attributes and channels multiply.
  Value number = llvm::isa<FakeQuantWithMinMaxVarsOp>(op) ? g.div(shifted, steps.size) : g.mul(shifted, steps.perUnit);
  Value rounded = g.mul(g.make<FloorOp>(g.add(g.sub(number, atZero), half)), steps.size);
  return one(g, g.select(steps.isEmpty, g.scalar(element, 0), rounded));
}

/// Operands: gradients, what was rounded, the range. Results: its gradient, and the range's.
Result fakeQuantGrad(Operation *op, GraphBuilder &g) {
  Value gradients = op->getOperand(0), inputs = op->getOperand(1);
  auto [min, max] = getRange(op, g, 2);
  FailureOr<Dims> shape = g.getShape(inputs);
  Steps steps = nudge(op, g, min, max);
  if (failed(shape))
    return failure();
  Type element = g.builder.getF32Type();
  Value isLow = g.less(inputs, steps.low), isHigh = g.less(steps.high, inputs);
  auto where = [&](Value condition) { return g.mul(gradients, g.cast(condition, element)); };
  Value isInside = g.both(g.lessEqual(steps.low, inputs), g.lessEqual(inputs, steps.high));
  SmallVector<Value> results = {where(g.either(isInside, steps.isEmpty))};
  if (op->getNumResults() == 3) {
    const bool perChannel = llvm::isa<FakeQuantWithMinMaxVarsPerChannelGradientOp>(op);
    SmallVector<int64_t> axes =
        llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shape->size()) - (perChannel ? 1 : 0)));
    Value isRange = g.negate(steps.isEmpty);
    results.push_back(g.sum(where(g.both(isLow, isRange)), axes));
    results.push_back(g.sum(where(g.both(isHigh, isRange)), axes));
  }
  if (g.failed() || llvm::is_contained(results, Value()))
    return failure();
  return results;
}

/// Operands: the values and their range, of which is taken what `range_given` asks for. The kernel is
/// quantize_and_dequantize_op.h's: the range's end that asks for longer steps says how long they are, and 0 is one.
Result quantizeAndDequantize(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), low = op->getOperand(1), high = op->getOperand(2);
  FailureOr<Dims> shape = g.getShape(x);
  FailureOr<int64_t> bits = llvm::isa<QuantizeAndDequantizeV3Op>(op) ? g.getConstant(op->getOperand(3))
                                                                     : FailureOr<int64_t>(getNumber(op, "num_bits"));
  if (failed(shape) || failed(bits))
    return failure();
  if (*bits < 1 || *bits > 62)
    return g.fail("num_bits must be between 1 and 62");
  const auto rank = static_cast<int64_t>(shape->size()), axis = getNumber(op, "axis");
  if (axis < -1 || axis >= rank)
    return g.fail("the axis is none of the input's");
  const bool isSigned = getFlag(op, "signed_input"), isGiven = getFlag(op, "range_given");
  const Type element = g.elementOf(x);
  auto number = [&](double value) { return g.scalar(element, value); };
  if (!isGiven) {
    SmallVector<int64_t> axes;
    for (int64_t at = 0; at < rank; ++at)
      if (at != axis)
        axes.push_back(at);
    low = g.reduce("dfg.min", x, axes, /*keepDims=*/true);
    high = g.reduce("dfg.max", x, axes, /*keepDims=*/true);
  } else if (axis >= 0) {
    Dims along(rank, Dim(1));
    along[axis] = (*shape)[axis];
    low = g.reshape(low, along);
    high = g.reshape(high, along);
  }
  const double most = std::ldexp(1.0, isSigned ? *bits - 1 : *bits) - 1;
  const double least = isSigned ? -std::ldexp(1.0, *bits - 1) + (getFlag(op, "narrow_range") ? 1 : 0) : 0;
  Value first = number(least), last = number(most), zero = number(0);
  Value largest =
      number(llvm::APFloat::getLargest(llvm::cast<FloatType>(element).getFloatSemantics()).convertToDouble());
  auto perUnit = [&](Value end, Value step) {
    return g.select(g.less(zero, g.mul(step, end)), g.div(step, end), largest);
  };
  Value fromLow = perUnit(low, first), fromHigh = perUnit(high, last), isLow = g.less(fromLow, fromHigh);
  Value scale = g.select(isLow, fromLow, fromHigh);
  Value size = least == 0 ? g.div(high, last) : g.select(isLow, g.div(low, first), g.div(high, last));
  if (isGiven) {
    Value top = g.select(isLow, g.mul(last, size), high), bottom = g.select(isLow, low, g.mul(first, size));
    x = g.maximum(g.minimum(x, top), bottom);
  }
  auto mode = op->getAttrOfType<StringAttr>("round_mode");
  Value steps = g.mul(x, scale);
  steps = mode && mode.getValue() == "HALF_UP" ? g.make<FloorOp>(g.add(steps, number(0.5))) : g.make<RintOp>(steps);
  return one(g, g.mul(steps, size));
}

/// Operands: gradients, the values, the range that was given. Outside the gradient is 0, and the range's is.
Result quantizeAndDequantizeGrad(Operation *op, GraphBuilder &g) {
  Value gradients = op->getOperand(0), x = op->getOperand(1), low = op->getOperand(2), high = op->getOperand(3);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return failure();
  SmallVector<Value> results = {Value(), g.zerosLike(low), g.zerosLike(high)};
  const auto rank = static_cast<int64_t>(shape->size()), axis = getNumber(op, "axis");
  if (axis < -1 || axis >= rank)
    return g.fail("the axis is none of the input's");
  if (axis >= 0) {
    Dims along(rank, Dim(1));
    along[axis] = (*shape)[axis];
    low = g.reshape(low, along);
    high = g.reshape(high, along);
  }
  Value isInside = g.both(g.lessEqual(low, x), g.lessEqual(x, high));
  results[0] = g.select(isInside, gradients, g.zerosLike(gradients));
  if (g.failed())
    return failure();
  return results;
}

} // namespace distc::dfg::decompositions

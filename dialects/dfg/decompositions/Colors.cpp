//===- Colors.cpp - Images in other colors -----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Hue, saturation and contrast, as augmentation changes them. What TensorFlow's
// colorspace_op.h, adjust_hue_op.cc, adjust_saturation_op.cc and
// adjust_contrast_op.cc compute, in their order; a hue is a part of a turn, from
// red over green and blue. A choice of many is made of `select`s, the last first.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// Three channels, each with a last axis of one element: red, green and blue, or hue, saturation and value.
using ColorChannels = std::array<Value, 3>;

class Colors {
public:
  Colors(GraphBuilder &g, Value images) : g(g), element(g.elementOf(images)) {}

  FailureOr<ColorChannels> split(Value images) {
    FailureOr<Dims> shape = g.getShape(images);
    if (failed(shape))
      return failure();
    if (shape->empty() || shape->back() != Dim(3))
      return g.fail("the last axis of the images is not one of three channels");
    axis = shape->size() - 1;
    return ColorChannels{g.slice(images, axis, 0, 1), g.slice(images, axis, 1, 1), g.slice(images, axis, 2, 1)};
  }
  Result join(ColorChannels channels, Value like) {
    return one(g, g.cast(g.concat(channels, axis), g.elementOf(like)));
  }

  Value number(double value) { return g.scalar(element, value); }
  Value between(Value x, Value low, Value high) { return g.minimum(g.maximum(x, low), high); }

  /// `norm` is 1 / (6 * range) as the kernel has it.
  ColorChannels toHsv(ColorChannels rgb, llvm::function_ref<Value(Value)> norm) {
    auto [r, g_, b] = rgb;
    Value value = g.maximum(g.maximum(r, g_), b), range = g.sub(value, g.minimum(r, g.minimum(g_, b)));
    Value zero = number(0), unit = norm(range);
    Value saturation = g.select(g.less(zero, value), g.div(range, value), g.zerosLike(value));
    Value toGreen = g.add(g.mul(unit, g.sub(b, r)), number(2.0 / 6));
    Value toBlue = g.add(g.mul(unit, g.sub(r, g_)), number(4.0 / 6));
    Value hue = g.select(g.equal(r, value), g.mul(unit, g.sub(g_, b)), g.select(g.equal(g_, value), toGreen, toBlue));
    hue = g.select(g.less(zero, range), hue, g.zerosLike(hue));
    return {g.select(g.less(hue, zero), g.add(hue, number(1)), hue), saturation, value};
  }

  /// The numbers of sixths of a turn, chosen by the sixth; behind them the last.
  Value choose(Value sixths, ArrayRef<Value> ofEach) {
    Value chosen = ofEach.back();
    for (int64_t at = static_cast<int64_t>(ofEach.size()) - 2; at >= 0; --at)
      chosen = g.select(g.less(sixths, number(at + 1)), ofEach[at], chosen);
    return chosen;
  }

  GraphBuilder &g;
  Type element;
  int64_t axis = 0;
};

} // namespace

Result rgbToHsv(Operation *op, GraphBuilder &g) {
  Colors c(g, op->getOperand(0));
  FailureOr<ColorChannels> rgb = c.split(op->getOperand(0));
  if (failed(rgb))
    return failure();
  return c.join(
      c.toHsv(*rgb, [&](Value range) { return g.mul(g.div(c.number(1), range), g.div(c.number(1), c.number(6))); }),
      op->getOperand(0));
}

Result hsvToRgb(Operation *op, GraphBuilder &g) {
  Colors c(g, op->getOperand(0));
  FailureOr<ColorChannels> hsv = c.split(op->getOperand(0));
  if (failed(hsv))
    return failure();
  auto [hue, saturation, value] = *hsv;
  Value zero = c.number(0), unit = c.number(1), sixths = g.mul(hue, c.number(6));
  auto distance = [&](double from) { return g.make<AbsOp>(g.sub(sixths, c.number(from))); };
  ColorChannels full = {g.sub(distance(3), unit), g.sub(c.number(2), distance(2)), g.sub(c.number(2), distance(4))};
  Value white = g.sub(unit, saturation);
  for (Value &channel : full)
    channel = g.mul(g.add(white, g.mul(saturation, c.between(channel, zero, unit))), value);
  return c.join(full, op->getOperand(0));
}

/// Operands: images, and by what part of a turn their hue is moved on.
Result adjustHue(Operation *op, GraphBuilder &g) {
  Value images = g.cast(op->getOperand(0), g.builder.getF32Type());
  Colors c(g, images);
  FailureOr<ColorChannels> rgb = c.split(images);
  if (failed(rgb))
    return failure();
  auto [red, green, blue] = *rgb;
  Value high = g.maximum(g.maximum(red, green), blue), low = g.minimum(g.minimum(red, green), blue);
  // Neither the highest nor the lowest.
  Value middle = g.maximum(g.minimum(red, green), g.minimum(g.maximum(red, green), blue));
  Value extent = g.sub(high, low), ratio = g.div(g.sub(middle, low), extent), down = g.sub(c.number(1), ratio);
  auto sixth = [&](double at, Value share) { return g.add(c.number(at), share); };
  auto ordered = [&](Value x, Value y, Value ifLess, Value ifNot) { return g.select(g.less(x, y), ifLess, ifNot); };
  Value greenHigh = ordered(blue, red, sixth(1, down), ordered(green, blue, sixth(3, down), sixth(2, ratio)));
  Value redHigh = ordered(blue, green, sixth(0, ratio), ordered(red, blue, sixth(4, ratio), sixth(5, down)));
  Value hue = ordered(red, green, greenHigh, redHigh);
  hue = g.select(g.equal(high, low), g.zerosLike(hue), hue);
  // Into [0, 6) again.
  Value turn = c.number(6);
  hue = g.add(hue, g.mul(op->getOperand(1), turn));
  hue = g.make<FloorModOp>({hue, turn});
  Value share = g.sub(hue, g.make<FloorOp>(hue));
  auto between = [&](Value part) { return g.add(low, g.mul(part, extent)); };
  Value rising = between(share), falling = between(g.sub(c.number(1), share));
  return c.join({c.choose(hue, {high, falling, low, low, rising, high}),
                 c.choose(hue, {rising, high, high, falling, low, low}),
                 c.choose(hue, {low, low, rising, high, high, falling})},
                op->getOperand(0));
}

/// Operands: images, and by what their saturation is multiplied.
Result adjustSaturation(Operation *op, GraphBuilder &g) {
  Value images = g.cast(op->getOperand(0), g.builder.getF32Type());
  Colors c(g, images);
  FailureOr<ColorChannels> rgb = c.split(images);
  if (failed(rgb))
    return failure();
  auto [hue, saturation, value] =
      c.toHsv(*rgb, [&](Value range) { return g.div(c.number(1), g.mul(c.number(6), range)); });
  saturation = c.between(g.mul(saturation, op->getOperand(1)), c.number(0), c.number(1));
  Value most = g.mul(saturation, value), least = g.sub(value, most), sixths = g.mul(hue, c.number(6));
  Value rest = g.make<FloorModOp>({sixths, c.number(2)});
  Value next = g.mul(most, g.sub(c.number(1), g.make<AbsOp>(g.sub(rest, c.number(1)))));
  Value none = g.zerosLike(most);
  ColorChannels channels = {c.choose(sixths, {most, next, none, none, next, most}),
                            c.choose(sixths, {next, most, most, next, none, none}),
                            c.choose(sixths, {none, none, next, most, most, next})};
  for (Value &channel : channels)
    channel = g.add(channel, least);
  return c.join(channels, op->getOperand(0));
}

/// Away from, or towards, each channel's mean of an image.
Result adjustContrast(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(images);
  if (failed(shape))
    return failure();
  int64_t rank = shape->size();
  Value x = g.cast(images, g.builder.getF32Type()), mean = g.mean(x, {rank - 3, rank - 2}, /*keepDims=*/true);
  return one(g, g.cast(g.add(g.mul(g.sub(x, mean), op->getOperand(1)), mean), g.elementOf(images)));
}

} // namespace distc::dfg::decompositions

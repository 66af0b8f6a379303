//===- Normalization.cpp - Batch normalization, local responses, contrast -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

/// Images, and what there is a channel of.
struct Channels {
  GraphBuilder &g;
  int64_t axis;
  /// All axes but that of the channels.
  SmallVector<int64_t> reduced;
  Dims shape;

  static FailureOr<Channels> of(Operation *op, GraphBuilder &g, Value images) {
    FailureOr<Dims> shape = g.getShape(images);
    if (failed(shape))
      return failure();
    StringRef format = getText(op, "data_format");
    int64_t rank = shape->size();
    Channels channels{g, format == "NCHW" || format == "NCDHW" ? 1 : rank - 1, {}, *shape};
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != channels.axis)
        channels.reduced.push_back(axis);
    return channels;
  }

  /// A vector of the channels that broadcasts over the images.
  Value along(Value vector) const {
    int64_t rank = shape.size();
    if (axis == rank - 1)
      return vector;
    Dims sizes(rank - axis, Dim(1));
    sizes[0] = shape[axis];
    return g.reshape(vector, sizes);
  }

  /// n / (n - 1) of the n elements of a channel, which makes the variance of a sample that of what it was drawn from.
  Value getBesselsCorrection(Value images) const {
    int64_t constant = 1;
    Value count;
    for (int64_t at : reduced) {
      const bool isBatch = at == 0;
      if (shape[at].isConstant() && !isBatch) {
        constant *= shape[at].getConstant();
        continue;
      }
      // Of a batch that the graph fixes, too: replicas have shares of it.
      Value size =
          isBatch ? g.askSizeOf(images, at, g.builder.getI32Type()) : g.sizeOf(images, at, g.builder.getI32Type());
      count = count ? g.mul(count, size) : size;
    }
    Type element = g.builder.getF32Type();
    if (constant != 1)
      count = g.mul(count, g.integer(constant));
    Value less = g.sub(count, g.integer(1));
    if (constant == 1)
      less = g.maximum(less, g.integer(1));
    return g.div(g.cast(count, element), g.cast(less, element));
  }
};

} // namespace

/// Operands: x, scale, offset, mean, variance.
Result batchNorm(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(0), scale = op->getOperand(1), offset = op->getOperand(2);
  FailureOr<Channels> channels = Channels::of(op, g, images);
  if (failed(channels))
    return failure();
  Type wide = g.elementOf(scale), element = g.elementOf(images);
  Value x = g.cast(images, wide), epsilon = g.scalar(wide, getReal(op, "epsilon"));
  const bool isTraining = getFlag(op, "is_training");
  Value mean = op->getOperand(3), variance = op->getOperand(4);
  if (isTraining)
    mean = g.mean(x, channels->reduced);
  Value centered = g.sub(x, channels->along(mean));
  if (isTraining)
    variance = g.mean(g.make<SquareOp>(centered), channels->reduced);
  Value factor = g.mul(g.rsqrt(g.add(variance, epsilon)), scale);
  Value y = g.cast(g.add(g.mul(centered, channels->along(factor)), channels->along(offset)), element);
  // What moving averages take, and what the gradient does.
  Value runningMean = mean, runningVariance = variance;
  if (isTraining) {
    runningVariance = g.mul(variance, channels->getBesselsCorrection(images));
    if (double share = getReal(op, "exponential_avg_factor"); share != 1) {
      auto blend = [&](Value old, Value next) {
        return g.add(g.mul(old, g.scalar(wide, 1 - share)), g.mul(next, g.scalar(wide, share)));
      };
      runningMean = blend(op->getOperand(3), mean);
      runningVariance = blend(op->getOperand(4), runningVariance);
    }
  }
  SmallVector<Value> results = {y, runningMean, runningVariance, mean, variance};
  // A library's workspace.
  if (op->getNumResults() > 5)
    results.push_back(g.table({0}, {}));
  if (g.failed())
    return failure();
  return results;
}

/// Operands: the gradient of y, x, scale, mean, variance.
Result batchNormGrad(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(1), scale = op->getOperand(2), mean = op->getOperand(3), variance = op->getOperand(4);
  FailureOr<Channels> channels = Channels::of(op, g, images);
  if (failed(channels))
    return failure();
  Type wide = g.elementOf(scale), element = g.elementOf(images);
  Value dy = g.cast(op->getOperand(0), wide), x = g.cast(images, wide);
  Value centered = g.sub(x, channels->along(mean));
  Value inverse = g.rsqrt(g.add(variance, g.scalar(wide, getReal(op, "epsilon"))));
  Value product = g.mul(dy, centered);
  Value dScale = g.mul(g.sum(product, channels->reduced), inverse), dOffset = g.sum(dy, channels->reduced);
  Value factor = g.mul(scale, inverse), inner = dy;
  // In training the statistics are functions of x, too.
  if (getFlag(op, "is_training")) {
    Value slope = g.mul(g.mean(product, channels->reduced), g.mul(inverse, inverse));
    inner = g.sub(g.sub(dy, channels->along(g.mean(dy, channels->reduced))), g.mul(centered, channels->along(slope)));
  }
  Value dx = g.cast(g.mul(inner, channels->along(factor)), element);
  SmallVector<Value> results = {dx, dScale, dOffset, g.table({0}, {}), g.table({0}, {})};
  if (g.failed())
    return failure();
  return results;
}

// ---- Local response normalization (Krizhevsky et al., 2012, section 3.3) ------------------------------

/// The sums over the channels at most `depth_radius` away.
static Value sumAround(Operation *op, GraphBuilder &g, Value x) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || shape->size() != 4 || !shape->back().isConstant())
    return (void)g.fail("the number of channels is not known"), Value();
  int64_t channels = shape->back().getConstant(), radius = std::min(getNumber(op, "depth_radius"), channels - 1);
  Value padded = g.padAxis(x, 3, radius, radius);
  SmallVector<Value> terms;
  for (int64_t at = 0; at <= 2 * radius; ++at)
    terms.push_back(g.slice(padded, 3, at, channels));
  return g.addAll(terms);
}

static Value getNorm(Operation *op, GraphBuilder &g, Value wide) {
  Type f32 = g.builder.getF32Type();
  return g.add(g.mul(sumAround(op, g, g.make<SquareOp>(wide)), g.scalar(f32, getReal(op, "alpha"))),
               g.scalar(f32, getReal(op, "bias")));
}

Result localResponse(Operation *op, GraphBuilder &g) {
  Value x = g.cast(op->getOperand(0), g.builder.getF32Type());
  Value power = g.pow(getNorm(op, g, x), g.scalar(g.builder.getF32Type(), -getReal(op, "beta")));
  return one(g, g.cast(g.mul(x, power), g.elementOf(op->getOperand(0))));
}

/// Operands: the gradient, the input, the output.
Result localResponseGrad(Operation *op, GraphBuilder &g) {
  Type f32 = g.builder.getF32Type();
  Value dy = g.cast(op->getOperand(0), f32), x = g.cast(op->getOperand(1), f32), y = g.cast(op->getOperand(2), f32);
  Value norm = getNorm(op, g, x);
  Value own = g.mul(dy, g.pow(norm, g.scalar(f32, -getReal(op, "beta"))));
  Value others = g.mul(g.mul(x, g.scalar(f32, -2 * getReal(op, "alpha") * getReal(op, "beta"))),
                       sumAround(op, g, g.div(g.mul(dy, y), norm)));
  return one(g, g.cast(g.add(own, others), g.elementOf(op->getOperand(0))));
}

} // namespace distc::dfg::decompositions

//===- Cropping.cpp - Boxes cut out of images and resized -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What TensorFlow's crop_and_resize_op.cc computes, in its precision and order. Boxes
// depend on data, so the pixels of a sample are gathered, by their number among those
// of all images; the gradient adds up by the same numbers.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/decompositions/Images.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

struct Sizes {
  int64_t images, crop; // along one axis
};

/// Where the samples of all boxes lie along one axis of the images.
struct Samples {
  Value at;        // [boxes, crop], in pixels
  Value low, high; // the pixels around, int32, those that there are
  Value share;     // how far from the lower one
  Value inside;    // in the image
};

class Cropping {
public:
  /// `boxes`: corners y1, x1, y2, x2, as parts of the images' extents.
  static FailureOr<Cropping> of(Operation *op, GraphBuilder &g, Value boxes, Value images, Sizes rows, Sizes columns,
                                int64_t channels) {
    FailureOr<Dims> shape = g.getShape(boxes);
    auto method = op->getAttrOfType<StringAttr>("method");
    if (failed(shape) || shape->size() != 2)
      return failure();
    return Cropping(g, boxes, images, (*shape)[0], rows, columns, channels, method && method.getValue() == "nearest");
  }

  /// [boxes, rows, columns, channels] of the images, a row of `pixels` each; [boxes, rows, columns, 1] of masks.
  Value crop(Value pixels, Value otherwise) {
    Value result;
    if (nearest) {
      result = gather(pixels, round(y), round(x));
    } else {
      auto mix = [&](Value a, Value b, Value share) { return g.add(a, g.mul(g.sub(b, a), share)); };
      Value shareX = column(x.share);
      Value top = mix(gather(pixels, y.low, x.low), gather(pixels, y.low, x.high), shareX);
      Value bottom = mix(gather(pixels, y.high, x.low), gather(pixels, y.high, x.high), shareX);
      result = mix(top, bottom, row(y.share));
    }
    return g.select(inside(), result, otherwise);
  }

  /// The sum of `grads` for each pixel of `count`.
  Value scatter(Value grads, Value count) {
    grads = g.select(inside(), grads, g.scalar(g.elementOf(grads), 0));
    if (nearest)
      return add(grads, round(y), round(x), count);
    Value one = g.scalar(g.elementOf(grads), 1), shareX = column(x.share), shareY = row(y.share);
    Value top = g.mul(g.sub(one, shareY), grads), bottom = g.mul(shareY, grads), rest = g.sub(one, shareX);
    return g.addAll({add(g.mul(rest, top), y.low, x.low, count), add(g.mul(shareX, top), y.low, x.high, count),
                     add(g.mul(rest, bottom), y.high, x.low, count),
                     add(g.mul(shareX, bottom), y.high, x.high, count)});
  }

  /// The gradient of the boxes, [boxes, 4].
  Value differentiate(Value pixels, Value grads) {
    Value topLeft = gather(pixels, y.low, x.low), topRight = gather(pixels, y.low, x.high),
          bottomLeft = gather(pixels, y.high, x.low), bottomRight = gather(pixels, y.high, x.high);
    Value one = g.scalar(g.elementOf(grads), 1), shareX = column(x.share), shareY = row(y.share);
    auto mix = [&](Value a, Value b, Value share) { return g.add(g.mul(g.sub(one, share), a), g.mul(share, b)); };
    auto sum = [&](Value slope) {
      return g.sum(g.select(inside(), g.mul(slope, grads), g.scalar(g.elementOf(grads), 0)), {3});
    };
    Value ofY = sum(mix(g.sub(bottomLeft, topLeft), g.sub(bottomRight, topRight), shareX));
    Value ofX = sum(mix(g.sub(topRight, topLeft), g.sub(bottomRight, bottomLeft), shareY));
    auto [firstY, lastY] = weigh(ofY, rows, 1);
    auto [firstX, lastX] = weigh(ofX, columns, 2);
    return g.pack({firstY, firstX, lastY, lastX}, 1);
  }

private:
  Cropping(GraphBuilder &g, Value boxes, Value images, Dim count, Sizes rows, Sizes columns, int64_t channels,
           bool nearest)
      : g(g), images(images), count(count), rows(rows), columns(columns), channels(channels), nearest(nearest),
        y(sample(boxes, 0, rows)), x(sample(boxes, 1, columns)) {}

  Value number(float value) { return g.scalar(g.builder.getF32Type(), value); }

  /// 0, 1, ... of a crop's samples.
  Value steps(int64_t size) {
    SmallVector<float> steps;
    for (int64_t i = 0; i < size; ++i)
      steps.push_back(static_cast<float>(i));
    return g.table({1, size}, steps);
  }

  Samples sample(Value boxes, int64_t axis, Sizes sizes) {
    Value first = g.slice(boxes, 1, axis, 1), last = g.slice(boxes, 1, axis + 2, 1);
    const float extent = static_cast<float>(sizes.images - 1);
    Samples samples;
    if (sizes.crop > 1) {
      Value scale = g.div(g.mul(g.sub(last, first), number(extent)), number(static_cast<float>(sizes.crop - 1)));
      samples.at = g.add(g.mul(first, number(extent)), g.mul(steps(sizes.crop), scale));
    } else {
      samples.at = g.mul(g.mul(number(0.5), g.add(first, last)), number(extent));
    }
    Value floor = g.make<FloorOp>(samples.at);
    samples.share = g.sub(samples.at, floor);
    samples.low = pixel(floor, sizes);
    samples.high = pixel(g.make<CeilOp>(samples.at), sizes);
    samples.inside = g.both(g.lessEqual(number(0), samples.at), g.lessEqual(samples.at, number(extent)));
    return samples;
  }

  Value pixel(Value at, Sizes sizes) {
    return g.minimum(g.maximum(g.cast(at, g.builder.getI32Type()), g.integer(0)), g.integer(sizes.images - 1));
  }

  /// Halves away from zero, which is upwards.
  Value round(const Samples &samples) {
    return g.select(g.lessEqual(number(0.5), samples.share), samples.high, samples.low);
  }

  /// [boxes, crop] in the places of rows and columns: [boxes, rows, 1, 1], [boxes, 1, columns, 1].
  Value row(Value values) { return g.reshape(values, {count, Dim(rows.crop), Dim(1), Dim(1)}); }
  Value column(Value values) { return g.reshape(values, {count, Dim(1), Dim(columns.crop), Dim(1)}); }

  Value inside() { return g.both(row(y.inside), column(x.inside)); }

  /// Numbers of the pixels at these rows and columns of each box's image, [boxes * rows * columns].
  Value pixelsAt(Value ofY, Value ofX) {
    Value image = g.reshape(images, {count, Dim(1), Dim(1), Dim(1)});
    Value line = g.add(g.mul(image, g.integer(rows.images)), row(ofY));
    Value pixels = g.add(g.mul(line, g.integer(columns.images)), column(ofX));
    return g.reshape(pixels, {count * Dim(rows.crop * columns.crop)});
  }

  Value gather(Value pixels, Value ofY, Value ofX) {
    Value found = g.gather(pixels, pixelsAt(ofY, ofX), 0);
    return g.cast(g.reshape(found, {count, Dim(rows.crop), Dim(columns.crop), Dim(channels)}), g.builder.getF32Type());
  }

  Value add(Value values, Value ofY, Value ofX, Value pixelCount) {
    Value lines = g.reshape(values, {count * Dim(rows.crop * columns.crop), Dim(channels)});
    return g.segmentSum(lines, pixelsAt(ofY, ofX), pixelCount);
  }

  /// What slopes along an axis are to the boxes' first and last corner.
  std::pair<Value, Value> weigh(Value slopes, Sizes sizes, int64_t axis) {
    const float extent = static_cast<float>(sizes.images - 1);
    Value perSample = g.sum(slopes, {axis == 1 ? 2 : 1}); // [boxes, crop]
    if (sizes.crop == 1) {
      Value half = g.sum(g.mul(perSample, number(0.5f * extent)), {1});
      return {half, half};
    }
    Value towardsLast = g.mul(steps(sizes.crop), number(extent / static_cast<float>(sizes.crop - 1)));
    return {g.sum(g.mul(perSample, g.sub(number(extent), towardsLast)), {1}),
            g.sum(g.mul(perSample, towardsLast), {1})};
  }

  GraphBuilder &g;
  Value images; // of each box
  Dim count;
  Sizes rows, columns;
  int64_t channels;
  bool nearest;
  Samples y, x;
};

/// The last three sizes of images, which have to be known.
FailureOr<SmallVector<int64_t>> getExtents(GraphBuilder &g, ArrayRef<Dim> shape) {
  FailureOr<Images> images = Images::of(g, shape);
  if (failed(images))
    return failure();
  if (images->height == 0 || images->width == 0)
    return g.fail("the size of the images is not known");
  return SmallVector<int64_t>{images->height, images->width, images->channels};
}

/// All pixels of images, a row each.
Value getPixels(GraphBuilder &g, Value images, Dim count, ArrayRef<int64_t> extents) {
  return g.reshape(images, {count * Dim(extents[0] * extents[1]), Dim(extents[2])});
}

} // namespace

/// Operands: images, boxes, the image of each box, the size of a crop.
Result cropAndResize(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(images);
  FailureOr<SmallVector<int64_t>> crop = g.getConstants(op->getOperand(3));
  if (failed(shape) || failed(crop))
    return failure();
  FailureOr<SmallVector<int64_t>> extents = getExtents(g, *shape);
  if (failed(extents))
    return failure();
  if (crop->size() != 2 || (*crop)[0] <= 0 || (*crop)[1] <= 0)
    return g.fail("the size of a crop is two numbers above 0");
  auto cropping = Cropping::of(op, g, op->getOperand(1), op->getOperand(2), {(*extents)[0], (*crop)[0]},
                               {(*extents)[1], (*crop)[1]}, (*extents)[2]);
  if (failed(cropping))
    return failure();
  auto otherwise = op->getAttrOfType<FloatAttr>("extrapolation_value");
  return one(g, cropping->crop(getPixels(g, images, (*shape)[0], *extents),
                               g.scalar(g.builder.getF32Type(), otherwise ? otherwise.getValueAsDouble() : 0)));
}

/// Operands: the gradient of crops, boxes, the image of each, the shape of the images.
Result cropAndResizeGradImage(Operation *op, GraphBuilder &g) {
  Value grads = op->getOperand(0), size = op->getOperand(3);
  FailureOr<Dims> crops = g.getShape(grads);
  std::optional<Dims> shape = g.shapes.getElements(size);
  if (failed(crops) || !shape || crops->size() != 4 || !(*crops)[1].isConstant() || !(*crops)[2].isConstant())
    return g.fail("the size of the images is not known");
  FailureOr<SmallVector<int64_t>> extents = getExtents(g, *shape);
  if (failed(extents))
    return failure();
  auto cropping = Cropping::of(op, g, op->getOperand(1), op->getOperand(2), {(*extents)[0], (*crops)[1].getConstant()},
                               {(*extents)[1], (*crops)[2].getConstant()}, (*extents)[2]);
  if (failed(cropping))
    return failure();
  Value images = g.make<StridedSliceOp>({size, g.integers({0}), g.integers({1}), g.integers({1})},
                                        g.attribute("shrink_axis_mask", g.builder.getI64IntegerAttr(1)));
  Value sum = cropping->scatter(grads, g.mul(images, g.integer((*extents)[0] * (*extents)[1])));
  sum = g.reshape(sum, {(*shape)[0], Dim((*extents)[0]), Dim((*extents)[1]), Dim((*extents)[2])});
  return one(g, g.cast(sum, g.elementOf(op->getResult(0))));
}

/// Operands: the gradient of crops, images, boxes, the image of each.
Result cropAndResizeGradBoxes(Operation *op, GraphBuilder &g) {
  Value grads = op->getOperand(0), images = op->getOperand(1);
  FailureOr<Dims> crops = g.getShape(grads), shape = g.getShape(images);
  if (failed(crops) || failed(shape))
    return failure();
  FailureOr<SmallVector<int64_t>> extents = getExtents(g, *shape);
  if (failed(extents))
    return failure();
  if (crops->size() != 4 || !(*crops)[1].isConstant() || !(*crops)[2].isConstant())
    return g.fail("the size of a crop is not known");
  auto cropping = Cropping::of(op, g, op->getOperand(2), op->getOperand(3), {(*extents)[0], (*crops)[1].getConstant()},
                               {(*extents)[1], (*crops)[2].getConstant()}, (*extents)[2]);
  if (failed(cropping))
    return failure();
  return one(g, cropping->differentiate(getPixels(g, images, (*shape)[0], *extents), grads));
}

} // namespace distc::dfg::decompositions

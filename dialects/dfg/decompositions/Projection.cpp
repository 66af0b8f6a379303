//===- Projection.cpp - Images as projections show them -------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What TensorFlow's image_ops.h computes (ProjectiveGenerator), in its precision and
// order: where each pixel of the result lies in its image, and what is read there.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/decompositions/Images.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

enum class Fill { Constant, Nearest, Reflect, Wrap };

class Projection {
public:
  struct Sizes {
    Images images;
    Dim transforms;        // one for all, or as many as images
    int64_t rows, columns; // of the result
  };

  Projection(GraphBuilder &g, Value images, Value transforms, Sizes sizes, Fill fill, Value otherwise)
      : g(g), sizes(sizes), fill(fill), otherwise(otherwise) {
    pixels = g.reshape(images,
                       {sizes.images.batch, Dim(sizes.images.height * sizes.images.width), Dim(sizes.images.channels)});
    locate(transforms);
  }

  /// The pixel that is nearest, in the images' type.
  Value readNearest() { return g.select(finite, read(round(y), round(x), otherwise), otherwise); }

  /// The mean of the four around, weighted by how near they are, in float32.
  Value readBilinear() {
    Value outside = g.cast(otherwise, g.builder.getF32Type());
    Value top = g.make<FloorOp>(y), left = g.make<FloorOp>(x);
    Value bottom = g.add(top, number(1)), right = g.add(left, number(1));
    auto mix = [&](Value low, Value high, Value at, Value first, Value second) {
      return g.add(g.mul(widen(g.sub(high, at)), first), g.mul(widen(g.sub(at, low)), second));
    };
    auto line = [&](Value row) { return mix(left, right, x, read(row, left, outside), read(row, right, outside)); };
    return g.select(finite, mix(top, bottom, y, line(top), line(bottom)), outside);
  }

private:
  Value number(float value) { return g.scalar(g.builder.getF32Type(), value); }

  Value steps(int64_t size, ArrayRef<int64_t> shape) {
    SmallVector<float> steps;
    for (int64_t i = 0; i < size; ++i)
      steps.push_back(static_cast<float>(i));
    return g.table(shape, steps);
  }

  /// Rows and columns of all pixels, [transforms, rows, columns].
  void locate(Value transforms) {
    Value column = steps(sizes.columns, {1, 1, sizes.columns}), row = steps(sizes.rows, {1, sizes.rows, 1});
    auto element = [&](int64_t i) {
      return g.reshape(g.slice(transforms, 1, i, 1), {sizes.transforms, Dim(1), Dim(1)});
    };
    auto apply = [&](int64_t i, Value shift) {
      return g.add(g.add(g.mul(element(i), column), g.mul(element(i + 1), row)), shift);
    };
    Value depth = apply(6, number(1));
    finite = widen(g.negate(g.equal(depth, number(0))));
    x = map(g.div(apply(0, element(2)), depth), sizes.images.width);
    y = map(g.div(apply(3, element(5)), depth), sizes.images.height);
  }

  /// Into the image, by what is thought to be outside of it.
  Value map(Value at, int64_t size) {
    const auto length = static_cast<float>(size);
    if (fill == Fill::Constant)
      return at;
    Value last = number(length - 1);
    if (fill != Fill::Nearest && size <= 1) {
      at = g.select(g.either(g.less(at, number(0)), g.less(last, at)), number(0), at);
    } else if (fill == Fill::Reflect) {
      Value period = number(2 * length);
      auto periods = [&](Value x) { return g.mul(period, g.make<FloorOp>(g.div(x, period))); };
      Value below = g.add(periods(g.neg(at)), at);
      below = g.select(g.less(below, number(-length)), g.add(below, period), g.sub(g.neg(below), number(1)));
      Value above = g.sub(at, periods(at));
      above = g.select(g.lessEqual(number(length), above), g.sub(g.sub(period, above), number(1)), above);
      at = choose(at, below, above, last);
    } else if (fill == Fill::Wrap) {
      auto turns = [&](Value x) { return g.make<FloorOp>(g.div(x, last)); };
      Value below = g.add(at, g.mul(number(length), g.add(turns(g.neg(at)), number(1))));
      Value above = g.sub(at, g.mul(number(length), turns(at)));
      at = choose(at, below, above, last);
    }
    return g.minimum(g.maximum(at, number(0)), last);
  }
  Value choose(Value at, Value below, Value above, Value last) {
    return g.select(g.less(at, number(0)), below, g.select(g.less(last, at), above, at));
  }

  /// Halves away from zero.
  Value round(Value at) {
    Value floor = g.make<FloorOp>(at), share = g.sub(at, floor), half = number(0.5);
    Value up = g.either(g.less(half, share), g.both(g.equal(half, share), g.less(number(0), at)));
    return g.select(up, g.add(floor, number(1)), floor);
  }

  /// A number for each pixel in front of channels.
  Value widen(Value values) {
    return g.reshape(values, {sizes.transforms, Dim(sizes.rows), Dim(sizes.columns), Dim(1)});
  }

  /// What the images have at rows and columns that are whole numbers; `outside` where they end. As `outside`'s type.
  Value read(Value row, Value column, Value outside) {
    auto within = [&](Value at, int64_t size) {
      return g.both(g.lessEqual(number(0), at), g.lessEqual(at, number(static_cast<float>(size - 1))));
    };
    Value inside = g.both(within(row, sizes.images.height), within(column, sizes.images.width));
    auto place = [&](Value at) { return g.cast(g.select(inside, at, number(0)), g.builder.getI32Type()); };
    Value places = g.add(g.mul(place(row), g.integer(sizes.images.width)), place(column));
    const int64_t count = sizes.rows * sizes.columns;
    const bool isShared = sizes.transforms == Dim(1);
    Value found = isShared ? g.gather(pixels, g.reshape(places, {Dim(count)}), 1)
                           : g.gather(pixels, g.reshape(places, {sizes.transforms, Dim(count)}), 1, 1);
    found = g.reshape(found, {sizes.images.batch, Dim(sizes.rows), Dim(sizes.columns), Dim(sizes.images.channels)});
    return g.select(widen(inside), g.cast(found, g.elementOf(outside)), outside);
  }

  GraphBuilder &g;
  const Sizes sizes;
  const Fill fill;
  Value otherwise;    // what is outside, in the images' type
  Value pixels;       // [images, pixels, channels]
  Value y, x, finite; // where pixels lie; whether they lie anywhere, [transforms, rows, columns, 1]
};

std::optional<Fill> findFill(StringRef name) {
  return llvm::StringSwitch<std::optional<Fill>>(name)
      .Case("CONSTANT", Fill::Constant)
      .Case("NEAREST", Fill::Nearest)
      .Case("REFLECT", Fill::Reflect)
      .Case("WRAP", Fill::Wrap)
      .Default(std::nullopt);
}

} // namespace

/// Operands: images, transforms, the size of the result, what is outside of images (0 where there is no such operand).
Result projectImages(Operation *op, GraphBuilder &g) {
  FailureOr<Images> images = Images::of(g, op->getOperand(0));
  FailureOr<Dims> transforms = g.getShape(op->getOperand(1));
  FailureOr<SmallVector<int64_t>> size = g.getConstants(op->getOperand(2));
  if (failed(images) || failed(transforms) || failed(size))
    return failure();
  if (images->height == 0 || images->width == 0 || images->channels == 0)
    return g.fail("the images have no pixels");
  if (transforms->size() != 2 || (*transforms)[1] != Dim(8) ||
      ((*transforms)[0] != Dim(1) && (*transforms)[0] != images->batch))
    return g.fail("there must be 8 numbers of a transform, for each image or for all");
  if (size->size() != 2 || (*size)[0] <= 0 || (*size)[1] <= 0)
    return g.fail("the size of the result is two numbers above 0");
  std::optional<Fill> fill = findFill(getText(op, "fill_mode"));
  const bool isNearest = getText(op, "interpolation") == "NEAREST";
  if (!fill || (!isNearest && getText(op, "interpolation") != "BILINEAR"))
    return g.fail("there is no such interpolation or fill mode");
  Type element = g.elementOf(op->getOperand(0));
  Value otherwise = op->getNumOperands() > 3 ? g.cast(op->getOperand(3), element) : g.scalar(element, 0);
  Projection projection(g, op->getOperand(0), op->getOperand(1), {*images, (*transforms)[0], (*size)[0], (*size)[1]},
                        *fill, otherwise);
  return one(g, isNearest ? projection.readNearest() : g.cast(projection.readBilinear(), element));
}

} // namespace distc::dfg::decompositions

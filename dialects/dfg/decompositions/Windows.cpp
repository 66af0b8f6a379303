//===- Windows.cpp - Convolutions and pools of three axes, pools with positions, dilations ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include <cmath>

using namespace mlir;

namespace distc::dfg::decompositions {

LogicalResult checkWindowAttributes(Operation *op, GraphBuilder &g, int64_t rank) {
  constexpr int64_t most = 1 << 30;
  for (StringRef name : {"strides", "dilations", "rates", "ksize", "ksizes"}) {
    auto array = op->getAttrOfType<ArrayAttr>(name);
    if (!array)
      continue;
    if (static_cast<int64_t>(array.size()) != rank)
      return g.fail("attribute '" + name + "' has " + Twine(array.size()) + " entries, not " + Twine(rank));
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t entry = shapes::getArrayEntry(op, name, axis, 1);
      if (entry < 1 || entry > most)
        return g.fail("attribute '" + name + "' has the entry " + Twine(entry) + ", outside of [1, " + Twine(most) +
                      "]");
      if (entry != 1 && (axis == 0 || axis == rank - 1))
        return g.fail("attribute '" + name + "' joins images or channels");
    }
  }
  return success();
}
namespace {

/// A window along an axis: tap i of element t of the result is element i * dilation + t * stride of the padded input.
struct Window {
  int64_t axis, size, taps, stride, dilation, before, after, out;

  int64_t padded() const { return before + size + after; }
  Value pad(GraphBuilder &g, Value x, Value value = Value()) const { return g.padAxis(x, axis, before, after, value); }
  Value crop(GraphBuilder &g, Value x) const { return g.slice(x, axis, before, size); }
  /// The elements that `tap` is of, of what is padded.
  Value take(GraphBuilder &g, Value x, int64_t tap) const { return g.slice(x, axis, tap * dilation, out, stride); }
  /// Those elements, zeros elsewhere: the gradient of `take`.
  Value put(GraphBuilder &g, Value x, int64_t tap) const {
    FailureOr<Dims> shape = g.getShape(x);
    if (failed(shape))
      return {};
    int64_t span = (out - 1) * stride + 1;
    if (stride > 1) {
      Dims spread = *shape;
      spread[axis] = out * stride;
      x = g.slice(g.reshape(g.padAxis(g.expandDims(x, axis + 1), axis + 1, 0, stride - 1), spread), axis, 0, span);
    }
    return g.padAxis(x, axis, tap * dilation, padded() - tap * dilation - span);
  }
};

FailureOr<Window> getWindow(Operation *op, GraphBuilder &g, Dim size, int64_t axis, int64_t taps, StringRef dilations) {
  if (!size.isConstant())
    return g.fail("the size of the images is not known");
  if (taps < 1 || taps > kMostTaps)
    return g.fail("its window of " + Twine(taps) + " is outside of [1, " + Twine(kMostTaps) + "]");
  int64_t stride = shapes::getArrayEntry(op, "strides", axis, 1),
          dilation = dilations.empty() ? 1 : shapes::getArrayEntry(op, dilations, axis, 1);
  auto window = shapes::resolveWindow(size, taps, stride, dilation, getText(op, "padding"));
  if (!window.size.isConstant() || window.size.getConstant() <= 0)
    return g.fail("its window is larger than the images");
  Window result{axis,     size.getConstant(), taps,         stride,
                dilation, window.before,      window.after, window.size.getConstant()};
  // Elements that no window reaches.
  int64_t reached = (result.out - 1) * stride + (taps - 1) * dilation + 1;
  result.after = std::max<int64_t>(reached - result.before - result.size, 0);
  return result;
}

LogicalResult checkVolumes(Operation *op, GraphBuilder &g) {
  if (getText(op, "data_format") != "NDHWC")
    return g.fail("data_format " + getText(op, "data_format") + " has no code; export the graph with NDHWC");
  return checkWindowAttributes(op, g, 5);
}

NamedAttribute array(GraphBuilder &g, StringRef name, ArrayRef<int64_t> values) {
  return g.attribute(name, g.builder.getI64ArrayAttr(values));
}

/// The depth's layers as images: [n, d, h, w, c] to [n * d, h, w, c].
Value joinDepth(GraphBuilder &g, Value x) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return {};
  const Dims &s = *shape;
  return g.reshape(x, {s[0] * s[1], s[2], s[3], s[4]});
}

/// And back, with `depth` layers.
Value splitDepth(GraphBuilder &g, Value x, Dim batch, int64_t depth) {
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return {};
  const Dims &s = *shape;
  return g.reshape(x, {batch, Dim(depth), s[1], s[2], s[3]});
}

// ---- Convolutions: the sum over the layers of the filter -----------------------------------------------

struct Convolution3D {
  GraphBuilder &g;
  Window depth;
  Dim batch;
  SmallVector<NamedAttribute> attributes;

  static FailureOr<Convolution3D> of(Operation *op, GraphBuilder &g, ArrayRef<Dim> images, ArrayRef<Dim> filter) {
    if (failed(checkVolumes(op, g)))
      return failure();
    if (images.size() != 5 || filter.size() != 5 || !filter[0].isConstant())
      return g.fail("the size of the images is not known");
    FailureOr<Window> depth = getWindow(op, g, images[1], 1, filter[0].getConstant(), "dilations");
    if (failed(depth))
      return failure();
    auto entries = [&](StringRef name) {
      return array(g, name, {1, shapes::getArrayEntry(op, name, 2, 1), shapes::getArrayEntry(op, name, 3, 1), 1});
    };
    return Convolution3D{g,
                         *depth,
                         images[0],
                         {entries("strides"), entries("dilations"), g.attribute("padding", op->getAttr("padding"))}};
  }
  Value layer(Value filter, int64_t tap) const {
    FailureOr<Dims> shape = g.getShape(filter);
    if (failed(shape))
      return {};
    return g.reshape(g.slice(filter, 0, tap, 1), ArrayRef(*shape).drop_front());
  }
};

} // namespace

Result conv3d(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), filter = op->getOperand(1);
  FailureOr<Dims> images = g.getShape(x), window = g.getShape(filter);
  if (failed(images) || failed(window))
    return failure();
  FailureOr<Convolution3D> conv = Convolution3D::of(op, g, *images, *window);
  if (failed(conv))
    return failure();
  Value padded = conv->depth.pad(g, x);
  SmallVector<Value> terms;
  for (int64_t tap = 0; tap < conv->depth.taps; ++tap)
    terms.push_back(
        g.make<Conv2DOp>({joinDepth(g, conv->depth.take(g, padded, tap)), conv->layer(filter, tap)}, conv->attributes));
  return one(g, splitDepth(g, g.addAll(terms), conv->batch, conv->depth.out));
}

/// Operands: the size of the input, the filter, the gradient of the output.
Result conv3dGradInput(Operation *op, GraphBuilder &g) {
  Value filter = op->getOperand(1), dy = op->getOperand(2);
  std::optional<Dims> images = g.shapes.getElements(op->getOperand(0));
  FailureOr<Dims> window = g.getShape(filter), output = g.getShape(dy);
  if (failed(window) || failed(output))
    return failure();
  if (!images || images->size() != 5)
    return g.fail("the size of the images is not known");
  FailureOr<Convolution3D> conv = Convolution3D::of(op, g, *images, *window);
  if (failed(conv))
    return failure();
  Value joined = joinDepth(g, dy);
  Value sizes = g.sizes({(*output)[0] * (*output)[1], (*images)[2], (*images)[3], (*images)[4]}, joined);
  SmallVector<Value> terms;
  for (int64_t tap = 0; tap < conv->depth.taps; ++tap) {
    Value dx =
        g.make<Conv2DBackpropInputOp>({sizes, conv->layer(filter, tap), joined}, conv->attributes, g.elementOf(dy));
    terms.push_back(conv->depth.put(g, splitDepth(g, dx, conv->batch, conv->depth.out), tap));
  }
  return one(g, conv->depth.crop(g, g.addAll(terms)));
}

/// Operands: the input, the size of the filter, the gradient of the output.
Result conv3dGradFilter(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), dy = op->getOperand(2);
  FailureOr<Dims> images = g.getShape(x);
  FailureOr<SmallVector<int64_t>> window = g.getConstants(op->getOperand(1));
  if (failed(images) || failed(window) || window->size() != 5)
    return failure();
  FailureOr<Convolution3D> conv = Convolution3D::of(op, g, *images, Dims(window->begin(), window->end()));
  if (failed(conv))
    return failure();
  Value padded = conv->depth.pad(g, x), sizes = g.integers(ArrayRef(*window).drop_front()), joined = joinDepth(g, dy);
  SmallVector<Value> layers;
  for (int64_t tap = 0; tap < conv->depth.taps; ++tap)
    layers.push_back(g.make<Conv2DBackpropFilterOp>({joinDepth(g, conv->depth.take(g, padded, tap)), sizes, joined},
                                                    conv->attributes));
  return one(g, g.pack(layers, 0));
}

// ---- Pools: first over an image, then over its depth --------------------------------------------------------

namespace {

/// Of height and width, and of the depth of [n, d, h * w, c].
std::array<SmallVector<NamedAttribute>, 2> getPoolAttributes(Operation *op, GraphBuilder &g) {
  auto at = [&](StringRef name, int64_t axis) { return shapes::getArrayEntry(op, name, axis, 1); };
  NamedAttribute padding = g.attribute("padding", op->getAttr("padding"));
  return {SmallVector<NamedAttribute>{array(g, "ksize", {1, at("ksize", 2), at("ksize", 3), 1}),
                                      array(g, "strides", {1, at("strides", 2), at("strides", 3), 1}), padding},
          SmallVector<NamedAttribute>{array(g, "ksize", {1, at("ksize", 1), 1, 1}),
                                      array(g, "strides", {1, at("strides", 1), 1, 1}), padding}};
}

template <typename Pool> Result pool3d(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape) || failed(checkVolumes(op, g)) || shape->size() != 5 || !(*shape)[1].isConstant())
    return failure();
  auto [ofImages, ofDepth] = getPoolAttributes(op, g);
  Value pooled = g.make<Pool>(joinDepth(g, x), ofImages);
  FailureOr<Dims> image = g.getShape(pooled);
  if (failed(image))
    return failure();
  Dim n = (*shape)[0], d = (*shape)[1], h = (*image)[1], w = (*image)[2], c = (*shape)[4];
  pooled = g.make<Pool>(g.reshape(pooled, {n, d, h * w, c}), ofDepth);
  if (image = g.getShape(pooled); failed(image))
    return failure();
  return one(g, g.reshape(pooled, {n, (*image)[1], h, w, c}));
}

} // namespace

Result maxPool3d(Operation *op, GraphBuilder &g) { return pool3d<MaxPoolOp>(op, g); }
Result avgPool3d(Operation *op, GraphBuilder &g) { return pool3d<AvgPoolOp>(op, g); }

/// Operands: the shape of the input, the gradient of the output.
Result avgPool3dGrad(Operation *op, GraphBuilder &g) {
  Value dy = op->getOperand(1);
  std::optional<Dims> images = g.shapes.getElements(op->getOperand(0));
  FailureOr<Dims> output = g.getShape(dy);
  if (failed(output) || failed(checkVolumes(op, g)))
    return failure();
  if (!images || images->size() != 5 || output->size() != 5)
    return g.fail("the size of the images is not known");
  auto [ofImages, ofDepth] = getPoolAttributes(op, g);
  Dim n = (*output)[0], h = (*output)[2], w = (*output)[3], c = (*output)[4], d = (*images)[1];
  Value flat = g.reshape(dy, {n, (*output)[1], h * w, c});
  Value dx = g.make<AvgPoolGradOp>({g.sizes({n, d, h * w, c}, flat), flat}, ofDepth, g.elementOf(dy));
  dx = g.reshape(dx, {n * d, h, w, c});
  dx = g.make<AvgPoolGradOp>({g.sizes({n * d, (*images)[2], (*images)[3], c}, dx), dx}, ofImages, g.elementOf(dy));
  if (!d.isConstant())
    return g.fail("the size of the images is not known");
  return one(g, splitDepth(g, dx, n, d.getConstant()));
}

// ---- By the taps of the window, each an element-wise step -----------------------------------------------------

namespace {

/// The windows of a node, of one axis each, and all their taps in row-major order.
struct Taps {
  GraphBuilder &g;
  SmallVector<Window> windows;

  static FailureOr<Taps> of(Operation *op, GraphBuilder &g, Value images, ArrayRef<int64_t> sizes,
                            StringRef dilations = "") {
    FailureOr<Dims> shape = g.getShape(images);
    if (failed(shape) || shape->size() != sizes.size() + 2 || failed(checkWindowAttributes(op, g, shape->size())))
      return failure();
    Taps taps{g, {}};
    int64_t count = 1;
    for (auto [i, size] : llvm::enumerate(sizes)) {
      FailureOr<Window> window = getWindow(op, g, (*shape)[i + 1], i + 1, size, dilations);
      if (failed(window))
        return failure();
      taps.windows.push_back(*window);
      if (count *= window->taps; count > kMostTaps)
        return g.fail("its window has more than " + Twine(kMostTaps) + " elements");
    }
    return taps;
  }
  /// What a window does not have is less than all it has.
  Value pad(Value x) const {
    Type element = g.elementOf(x);
    double lowest = -std::numeric_limits<double>::infinity();
    if (!llvm::isa<FloatType>(element))
      return (void)g.fail("there are no windows of elements of its type"), Value();
    return pad(x, g.scalar(element, lowest));
  }
  Value pad(Value x, Value value) const {
    for (const Window &window : windows)
      x = window.pad(g, x, value);
    return x;
  }
  Value take(Value x, ArrayRef<int64_t> tap) const {
    for (auto [window, at] : llvm::zip(windows, tap))
      x = window.take(g, x, at);
    return x;
  }
  Value put(Value x, ArrayRef<int64_t> tap) const {
    for (auto [window, at] : llvm::zip(windows, tap))
      x = window.put(g, x, at);
    return x;
  }
  Value crop(Value x) const {
    for (const Window &window : windows)
      x = window.crop(g, x);
    return x;
  }
  template <typename Step> void forEach(Step step) const {
    SmallVector<int64_t> tap(windows.size(), 0);
    for (;;) {
      step(ArrayRef<int64_t>(tap));
      int64_t axis = static_cast<int64_t>(windows.size()) - 1;
      while (axis >= 0 && ++tap[axis] == windows[axis].taps)
        tap[axis--] = 0;
      if (axis < 0)
        return;
    }
  }
};

SmallVector<int64_t> getWindowSizes(Operation *op, ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [&](int64_t axis) { return shapes::getArrayEntry(op, "ksize", axis, 1); });
}

} // namespace

/// Operands: input, output, the output's gradient, which goes to every element that is less than 1e-5 from the largest
/// of its window: TensorFlow's on CPUs compares so, and small activations (a PReLU's behind a batch normalization) meet
/// it. An infinite largest element gets nothing there.
Result maxPool3dGrad(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), y = op->getOperand(1), dy = op->getOperand(2);
  if (failed(checkVolumes(op, g)))
    return failure();
  FailureOr<Taps> taps = Taps::of(op, g, x, getWindowSizes(op, {1, 2, 3}));
  if (failed(taps))
    return failure();
  Value padded = taps->pad(x), zero = g.scalar(g.elementOf(dy), 0), near = g.scalar(g.elementOf(x), 1e-5);
  SmallVector<Value> terms;
  taps->forEach([&](ArrayRef<int64_t> tap) {
    Value below = g.make<AbsOp>({g.sub(taps->take(padded, tap), y)});
    terms.push_back(taps->put(g.select(g.less(below, near), dy, zero), tap));
  });
  return one(g, taps->crop(g.addAll(terms)));
}

namespace {

/// Where an element of an image is: ((h * width) + w) * channels + c, and that of the whole batch behind earlier
/// images.
class ImagePositions {
public:
  ImagePositions(Operation *op, const Taps &taps, Value images, int64_t channels, Type element)
      : g(taps.g), rows(taps.windows[0]), columns(taps.windows[1]), channels(channels), element(element) {
    if (getFlag(op, "include_batch_in_index"))
      image = g.mul(g.positions(images, 0, element), g.scalar(element, rows.size * columns.size * channels));
    first = locate([](const Window &axis, Value at) { return at; });
  }
  /// Of the elements that a tap is of.
  Value at(ArrayRef<int64_t> tap) {
    return g.add(first,
                 g.scalar(element, ((tap[0] - rows.before) * columns.size + tap[1] - columns.before) * channels));
  }

  /// Of the first element of each window that is one of the image.
  Value atFirstInside() {
    return locate([&](const Window &axis, Value at) {
      return g.maximum(g.sub(at, g.scalar(element, axis.before)), g.scalar(element, 0));
    });
  }

private:
  /// `move`: from where a window begins along an axis, without what it is padded by.
  Value locate(llvm::function_ref<Value(const Window &, Value)> move) {
    auto along = [&](int64_t count, int64_t step) {
      return g.mul(g.cast(g.make<RangeOp>({g.integer(0), g.integer(count), g.integer(1)}), element),
                   g.scalar(element, step));
    };
    Value h = g.mul(move(rows, along(rows.out, rows.stride)), g.scalar(element, columns.size * channels));
    Value w = g.mul(move(columns, along(columns.out, columns.stride)), g.scalar(element, channels));
    Value at = g.add(g.add(g.reshape(h, {Dim(rows.out), Dim(1), Dim(1)}), g.reshape(w, {Dim(columns.out), Dim(1)})),
                     along(channels, 1));
    return image ? g.add(g.expandDims(g.expandDims(g.expandDims(image, 1), 2), 3), at) : at;
  }

  GraphBuilder &g;
  Window rows, columns;
  int64_t channels;
  Type element;
  Value image; // where each begins, in an index of the whole batch
  Value first;
};

} // namespace

Result maxPoolWithArgmax(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0);
  FailureOr<Taps> taps = Taps::of(op, g, x, getWindowSizes(op, {1, 2}));
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(taps) || failed(shape) || !shape->back().isConstant())
    return failure();
  Value y =
      g.make<MaxPoolOp>(x, {g.attribute("ksize", op->getAttr("ksize")), g.attribute("strides", op->getAttr("strides")),
                            g.attribute("padding", op->getAttr("padding"))});
  ImagePositions positions(op, *taps, x, shape->back().getConstant(), g.elementOf(op->getResult(1)));
  // The library's largest starts from the lowest finite number, which is none of a window that is -inf throughout:
  // TensorFlow gives the first element there.
  Value padded = taps->pad(x), zeros = g.zerosLike(y);
  Value argmax = g.add(g.cast(zeros, g.elementOf(op->getResult(1))), positions.atFirstInside());
  const Type type = g.elementOf(x);
  auto floats = llvm::dyn_cast<FloatType>(type);
  if (!floats)
    return g.fail("there are no windows of elements of its type");
  Value least = g.scalar(type, APFloat::getLargest(floats.getFloatSemantics(), /*Negative=*/true).convertToDouble());
  Value largest = g.select(g.equal(y, least), g.scalar(type, -std::numeric_limits<double>::infinity()), y);
  // From the last tap to the first, which stays.
  SmallVector<SmallVector<int64_t>> order;
  taps->forEach([&](ArrayRef<int64_t> tap) { order.emplace_back(tap); });
  for (ArrayRef<int64_t> tap : llvm::reverse(order)) {
    Value isLargest = g.equal(taps->take(padded, tap), y);
    argmax = g.select(isLargest, positions.at(tap), argmax);
    largest = g.select(isLargest, y, largest);
  }
  if (g.failed())
    return failure();
  return SmallVector<Value>{largest, argmax};
}

/// Operands: the input, the gradient of the output, where the largest element of each window is.
Result maxPoolGradWithArgmax(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), dy = op->getOperand(1), argmax = op->getOperand(2);
  FailureOr<Taps> taps = Taps::of(op, g, x, getWindowSizes(op, {1, 2}));
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(taps) || failed(shape) || !shape->back().isConstant())
    return failure();
  ImagePositions positions(op, *taps, x, shape->back().getConstant(), g.elementOf(argmax));
  Value zero = g.scalar(g.elementOf(dy), 0);
  SmallVector<Value> terms;
  taps->forEach([&](ArrayRef<int64_t> tap) {
    terms.push_back(taps->put(g.select(g.equal(argmax, positions.at(tap)), dy, zero), tap));
  });
  return one(g, taps->crop(g.addAll(terms)));
}

/// Operands: input, output, a gradient of the input's shape. Each window takes that of the first element that is its
/// largest.
Result maxPoolGradGrad(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), y = op->getOperand(1), d = op->getOperand(2);
  const bool isVolume = llvm::isa<MaxPool3DGradGradOp>(op);
  if (isVolume ? failed(checkVolumes(op, g)) : getText(op, "data_format") != "NHWC")
    return g.fail("data_format " + getText(op, "data_format") + " has no code; export the graph with NHWC");
  SmallVector<int64_t> axes = isVolume ? SmallVector<int64_t>{1, 2, 3} : SmallVector<int64_t>{1, 2};
  FailureOr<Taps> taps = Taps::of(op, g, x, getWindowSizes(op, axes));
  if (failed(taps))
    return failure();
  Value padded = taps->pad(x), moved = taps->pad(d, g.scalar(g.elementOf(d), 0)), result = g.zerosLike(y);
  // From the last tap to the first, which stays.
  SmallVector<SmallVector<int64_t>> order;
  taps->forEach([&](ArrayRef<int64_t> tap) { order.emplace_back(tap); });
  for (ArrayRef<int64_t> tap : llvm::reverse(order))
    result = g.select(g.equal(taps->take(padded, tap), y), taps->take(moved, tap), result);
  return one(g, result);
}

/// The last two operands are the window's sizes and strides, which are attributes of the operation that it is made of.
Result maxPoolV2(Operation *op, GraphBuilder &g) {
  const unsigned images = op->getNumOperands() - 2;
  FailureOr<SmallVector<int64_t>> sizes = g.getConstants(op->getOperand(images)),
                                  strides = g.getConstants(op->getOperand(images + 1));
  if (failed(sizes) || failed(strides))
    return failure();
  SmallVector<NamedAttribute> attributes = {array(g, "ksize", *sizes), array(g, "strides", *strides),
                                            g.attribute("padding", op->getAttr("padding")),
                                            g.attribute("data_format", op->getAttr("data_format"))};
  ValueRange operands = op->getOperands().drop_back(2);
  return one(g, images == 1 ? g.make<MaxPoolOp>(operands, attributes) : g.make<MaxPoolGradOp>(operands, attributes));
}

// ---- Dilation: the largest of a window's elements with the filter's added -------------------------------------

namespace {

struct Dilation {
  GraphBuilder &g;
  Taps taps;
  Value padded, filter;
  int64_t channels;

  static FailureOr<Dilation> of(Operation *op, GraphBuilder &g) {
    FailureOr<Dims> filter = g.getShape(op->getOperand(1));
    if (failed(filter) || filter->size() != 3 || llvm::any_of(*filter, [](Dim size) { return !size.isConstant(); }))
      return g.fail("the size of the filter is not known");
    FailureOr<Taps> taps =
        Taps::of(op, g, op->getOperand(0), {(*filter)[0].getConstant(), (*filter)[1].getConstant()}, "rates");
    if (failed(taps))
      return failure();
    Value padded = taps->pad(op->getOperand(0));
    return Dilation{g, *taps, padded, op->getOperand(1), filter->back().getConstant()};
  }
  Value at(ArrayRef<int64_t> tap) const {
    Value weights = g.reshape(g.slice(g.slice(filter, 0, tap[0], 1), 1, tap[1], 1), {Dim(channels)});
    return g.add(taps.take(padded, tap), weights);
  }
  Value largest() const {
    Value y;
    taps.forEach([&](ArrayRef<int64_t> tap) {
      Value next = at(tap);
      y = y ? g.maximum(y, next) : next;
    });
    return y;
  }
};

} // namespace

Result dilation2d(Operation *op, GraphBuilder &g) {
  FailureOr<Dilation> dilation = Dilation::of(op, g);
  return failed(dilation) ? Result(failure()) : one(g, dilation->largest());
}

/// Operands: input, filter, the gradient, which goes to the first of the largest.
Result dilation2dGrad(Operation *op, GraphBuilder &g) {
  FailureOr<Dilation> dilation = Dilation::of(op, g);
  FailureOr<Dims> window = g.getShape(op->getOperand(1));
  if (failed(dilation) || failed(window))
    return failure();
  const bool ofFilter = llvm::isa<Dilation2DBackpropFilterOp>(op);
  Value y = dilation->largest(), dy = op->getOperand(2), zero = g.scalar(g.elementOf(dy), 0), taken;
  SmallVector<Value> terms;
  dilation->taps.forEach([&](ArrayRef<int64_t> tap) {
    Value hit = g.equal(dilation->at(tap), y);
    Value first = taken ? g.both(hit, g.negate(taken)) : hit;
    taken = taken ? g.either(taken, hit) : hit;
    Value own = g.select(first, dy, zero);
    terms.push_back(ofFilter ? g.sum(own, {0, 1, 2}) : dilation->taps.put(own, tap));
  });
  return one(g, ofFilter ? g.reshape(g.pack(terms, 0), *window) : dilation->taps.crop(g.addAll(terms)));
}

// ---- Windows that are drawn ----------------------------------------------------------------------------

/// Images. The result's sizes are quotients in float32, rounded down, as TensorFlow's kernel has them.
Result fractionalPool(Operation *op, GraphBuilder &g) {
  Value images = op->getOperand(0);
  FailureOr<Dims> shape = g.getShape(images);
  if (failed(shape) || shape->size() != 4 || !(*shape)[1].isConstant() || !(*shape)[2].isConstant())
    return g.fail("the size of the images is not known");
  auto given = op->getAttrOfType<ArrayAttr>("pooling_ratio");
  SmallVector<float> ratios;
  for (Attribute ratio : given ? given.getValue() : ArrayRef<Attribute>())
    ratios.push_back(static_cast<float>(llvm::cast<FloatAttr>(ratio).getValueAsDouble()));
  if (ratios.size() != 4 || ratios[0] != 1 || ratios[3] != 1 || !(ratios[1] >= 1) || !(ratios[2] >= 1))
    return g.fail("its pooling_ratio is not of the form [1, rows, columns, 1]");
  SmallVector<int64_t> sizes = {(*shape)[1].getConstant(), (*shape)[2].getConstant()};
  for (unsigned axis : {0, 1})
    sizes.push_back(static_cast<int64_t>(std::floor(static_cast<float>(sizes[axis]) / ratios[axis + 1])));
  if (sizes[2] == 0 || sizes[3] == 0)
    return g.fail("its result has no elements");
  Type i64 = g.builder.getI64Type();
  auto windows = g.makeAll<FractionalSequencesOp>(
      {}, {i64, i64},
      {g.attribute("sizes", g.builder.getI64ArrayAttr(sizes)), g.flag("pseudo_random", getFlag(op, "pseudo_random")),
       g.flag("deterministic", getFlag(op, "deterministic")), g.attribute("seed", op->getAttr("seed")),
       g.attribute("seed2", op->getAttr("seed2"))});
  if (g.failed())
    return failure();
  const Value operands[] = {images, windows[0], windows[1]};
  auto overlapping = g.flag("overlapping", getFlag(op, "overlapping"));
  Value pooled = llvm::isa<FractionalMaxPoolOp>(op) ? g.make<FractionalMaxOp>(operands, overlapping)
                                                    : g.make<FractionalAvgOp>(operands, overlapping);
  if (g.failed())
    return failure();
  return SmallVector<Value>{pooled, windows[0], windows[1]};
}

/// Operands: the images' shape, the gradient, where rows and columns of windows begin.
Result fractionalAvgPoolGrad(Operation *op, GraphBuilder &g) {
  auto shape = g.shapes.getElements(op->getOperand(0));
  if (!shape || shape->size() != 4 || !(*shape)[1].isConstant() || !(*shape)[2].isConstant())
    return g.fail("the size of the images is not known");
  return one(
      g, g.make<FractionalAvgGradOp>(
             op->getOperands().drop_front(),
             {g.attribute("sizes", g.builder.getI64ArrayAttr({(*shape)[1].getConstant(), (*shape)[2].getConstant()})),
              g.flag("overlapping", getFlag(op, "overlapping"))}));
}

} // namespace distc::dfg::decompositions

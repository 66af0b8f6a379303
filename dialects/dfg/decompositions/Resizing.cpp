//===- Resizing.cpp - Images of another size ---------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What a row of the result is made of is known when it is compiled: a matrix, by
// which rows are multiplied, and columns by another. The gradient is the product
// with the transposed ones. Weights are computed as by TensorFlow's
// image_resizer_state.h, resize_{area,bilinear,bicubic}_op.cc, in float.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/decompositions/Images.h"
#include <cmath>

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

enum class Method { Area, Bilinear, Bicubic, Nearest };

constexpr StringRef kTooLarge = "the images are too large to be resized, or have no pixels";

/// What an axis of `out` elements is made of, each of the `in` elements of another with its weight.
struct Table {
  int64_t in, out;

  /// Whether there may be one: weights, or positions, are constants of the program.
  bool isPossible() const {
    constexpr int64_t kMostWeights = 1 << 25;
    return in > 0 && out > 0 && in <= kMostWeights && out <= kMostWeights / in;
  }

  /// out x in, row-major, or transposed. `addRow(at, add)` calls add(from, weight) for what row `at` is made of.
  template <typename AddRow> std::vector<float> fill(bool transposed, AddRow addRow) const {
    std::vector<float> matrix(in * out, 0.0f);
    for (int64_t at = 0; at < out; ++at)
      addRow(at, [&](int64_t from, float weight) { matrix[transposed ? from * out + at : at * in + from] += weight; });
    return matrix;
  }
};

/// Along one axis, from `in` elements to `out`.
class Axis {
public:
  Axis(Operation *op, Method method, int64_t in, int64_t out)
      : method(method), in(in), out(out), alignCorners(getFlag(op, "align_corners")),
        halfPixel(op->hasAttr("half_pixel_centers") && getFlag(op, "half_pixel_centers")) {
    // Areas of the only element are parts of it: TensorFlow's kernel has no corners there.
    const bool hasCorners = out > 1 && (in > 1 || method != Method::Area);
    scale = alignCorners && hasCorners ? (in - 1) / static_cast<float>(out - 1) : in / static_cast<float>(out);
  }

  /// The nearest element's position.
  int64_t nearest(int64_t at) const {
    float from = halfPixel ? (static_cast<float>(at) + 0.5f) * scale : static_cast<float>(at) * scale;
    auto position = static_cast<int64_t>(alignCorners ? std::round(from) : std::floor(from));
    return std::max<int64_t>(std::min(position, in - 1), 0);
  }

  bool isTable() const { return Table{in, out}.isPossible(); }
  std::vector<float> weights(bool transposed) const {
    return Table{in, out}.fill(transposed, [this](int64_t at, auto add) { addRow(at, add); });
  }

private:
  template <typename Add> void addRow(int64_t at, Add add) const {
    if (method == Method::Nearest)
      return add(nearest(at), 1.0f);
    if (method == Method::Area)
      return addArea(at, add);
    float from = halfPixel ? (static_cast<float>(at) + 0.5f) * scale - 0.5f : static_cast<float>(at) * scale;
    float floor = std::floor(from);
    if (method == Method::Bilinear) {
      float share = from - floor;
      add(std::max<int64_t>(static_cast<int64_t>(floor), 0), 1 - share);
      add(std::min<int64_t>(static_cast<int64_t>(std::ceil(from)), in - 1), share);
      return;
    }
    addCubic(static_cast<int64_t>(floor), std::lrint((from - floor) * kSteps), add);
  }

  /// Each element by how much of it lies in the result's.
  template <typename Add> void addArea(int64_t at, Add add) const {
    const float begin = static_cast<float>(at) * scale, end = static_cast<float>(at + 1) * scale;
    const auto last = static_cast<int64_t>(std::ceil(end));
    for (auto from = static_cast<int64_t>(std::floor(begin)); from < last; ++from) {
      const bool endsHere = static_cast<float>(from + 1) > end;
      float covered = static_cast<float>(from) < begin ? (endsHere ? scale : static_cast<float>(from + 1) - begin)
                                                       : (endsHere ? end - static_cast<float>(from) : 1.0f);
      add(std::max<int64_t>(std::min(from, in - 1), 0), covered / scale);
    }
  }

  /// Keys, Cubic convolution interpolation for digital image processing, 1981: with half pixels as there, and without
  /// what is outside.
  template <typename Add> void addCubic(int64_t floor, int64_t step, Add add) const {
    const float weights[4] = {cubic(step, 1), cubic(step, 0), cubic(kSteps - step, 0), cubic(kSteps - step, 1)};
    float sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += isInside(floor - 1 + i) ? weights[i] : 0;
    const bool scaled = halfPixel && std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
    for (int i = 0; i < 4; ++i) {
      int64_t at = floor - 1 + i;
      if (!halfPixel)
        add(std::max<int64_t>(std::min(at, in - 1), 0), weights[i]);
      else if (isInside(at))
        add(at, scaled ? weights[i] / sum : weights[i]);
    }
  }
  bool isInside(int64_t at) const { return at >= 0 && at < in; }

  /// The kernel at step / kSteps, or one further out, as TensorFlow's table has it.
  float cubic(int64_t step, int half) const {
    const float a = halfPixel ? -0.5f : -0.75f;
    float x = step * 1.0f / kSteps;
    if (half == 0)
      return ((a + 2) * x - (a + 3)) * x * x + 1;
    x += 1.0f;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }

  static constexpr int64_t kSteps = 1 << 10;
  Method method;
  int64_t in, out;
  bool alignCorners, halfPixel;
  float scale;
};

/// Along one axis, from `in` elements to `out`, which lie where a scale and a shift put them: what TensorFlow's
/// scale_and_translate_op.cc and sampling_kernels.h compute.
class SampledAxis {
public:
  using Kernel = float (*)(float x, float radius);
  struct Named {
    StringRef name;
    Kernel kernel;
    float radius;
  };

  SampledAxis(const Named &kernel, int64_t in, int64_t out, float scale, float translation, bool antialias)
      : kernel(kernel), in(in), out(out), inverseScale(static_cast<float>(1.0 / static_cast<double>(scale))),
        inverseTranslation(-inverseScale * translation), width(antialias ? std::max(inverseScale, 1.0f) : 1.0f) {}

  static const Named *find(StringRef name) {
    static const Named kernels[] = {
        {"lanczos1", lanczos, 1}, {"lanczos3", lanczos, 3},  {"lanczos5", lanczos, 5}, {"gaussian", gauss, 1.5},
        {"box", box, 1},          {"triangle", triangle, 1}, {"keyscubic", keys, 2},   {"mitchellcubic", mitchell, 2}};
    const Named *found = llvm::find_if(kernels, [&](const Named &named) { return named.name == name; });
    return found == std::end(kernels) ? nullptr : found;
  }

  bool isTable() const { return Table{in, out}.isPossible(); }
  std::vector<float> weights(bool transposed) const {
    return Table{in, out}.fill(transposed, [this](int64_t at, auto add) { addRow(at, add); });
  }

private:
  template <typename Add> void addRow(int64_t at, Add add) const {
    const float sample = (static_cast<float>(at) + 0.5f) * inverseScale + inverseTranslation;
    if (!(sample >= 0 && sample <= static_cast<float>(in)))
      return;
    const float reach = kernel.radius * width;
    const auto first = clamp(std::ceil(sample - reach - 0.5f)), last = clamp(std::floor(sample + reach - 0.5f));
    std::vector<float> row;
    float sum = 0;
    for (int64_t from = first; from <= last; ++from) {
      const float distance = static_cast<float>(from) + 0.5f - sample;
      row.push_back(kernel.kernel(std::abs(distance * (1.0f / width)), kernel.radius));
      sum += row.back();
    }
    if (std::abs(sum) < 1000.0f * std::numeric_limits<float>::min())
      return;
    for (auto [index, weight] : llvm::enumerate(row))
      add(first + static_cast<int64_t>(index), weight * (1.0f / sum));
  }

  int64_t clamp(float at) const {
    return static_cast<int64_t>(std::min(std::max(at, 0.0f), static_cast<float>(in - 1)));
  }

  static float lanczos(float x, float radius) {
    constexpr float kPi = 3.14159265359;
    if (x > radius)
      return 0;
    if (x <= 1e-3f)
      return 1;
    return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
  }
  static float gauss(float x, float radius) {
    const float sigma = radius / 3;
    return x >= radius ? 0 : std::exp(-x * x / (2 * sigma * sigma));
  }
  static float box(float x, float) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
  static float triangle(float x, float) { return x < 1 ? 1 - x : 0; }
  static float keys(float x, float) {
    if (x >= 2)
      return 0;
    return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
  }
  static float mitchell(float x, float) {
    if (x >= 2)
      return 0;
    return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : ((7.0f / 6 * x - 2) * x) * x + 8.0f / 9;
  }

  const Named &kernel;
  int64_t in, out;
  float inverseScale, inverseTranslation, width;
};

/// Rows by a matrix of `height` x own rows, columns by one of `width` x own columns.
Value multiply(GraphBuilder &g, Value x, Images from, int64_t height, ArrayRef<float> rows, int64_t width,
               ArrayRef<float> columns) {
  Dim n = from.batch;
  Value tall = g.reshape(x, {n, Dim(from.height), Dim(from.width * from.channels)});
  tall = g.batchMatMul(g.table({height, from.height}, rows), tall);
  Value wide = g.reshape(tall, {n * Dim(height), Dim(from.width), Dim(from.channels)});
  wide = g.batchMatMul(g.table({width, from.width}, columns), wide);
  return g.reshape(wide, {n, Dim(height), Dim(width), Dim(from.channels)});
}

/// Operands: images, the size of the result.
Result resize(Operation *op, GraphBuilder &g, Method method) {
  FailureOr<Images> images = Images::of(g, op->getOperand(0));
  FailureOr<SmallVector<int64_t>> size = g.getConstants(op->getOperand(1));
  if (failed(images) || failed(size) || size->size() != 2 || (*size)[0] <= 0 || (*size)[1] <= 0)
    return failure();
  Axis rows(op, method, images->height, (*size)[0]), columns(op, method, images->width, (*size)[1]);
  if (!rows.isTable() || !columns.isTable())
    return g.fail(kTooLarge);
  Value x = g.cast(op->getOperand(0), g.builder.getF32Type());
  return one(g, multiply(g, x, *images, (*size)[0], rows.weights(false), (*size)[1], columns.weights(false)));
}

/// The gradient of images of size `height` x `width`.
Result resizeGrad(Operation *op, GraphBuilder &g, Method method, int64_t height, int64_t width) {
  FailureOr<Images> grads = Images::of(g, op->getOperand(0));
  if (failed(grads))
    return failure();
  Axis rows(op, method, height, grads->height), columns(op, method, width, grads->width);
  if (!rows.isTable() || !columns.isTable())
    return g.fail(kTooLarge);
  Value dy = g.cast(op->getOperand(0), g.builder.getF32Type());
  Value dx = multiply(g, dy, *grads, height, rows.weights(true), width, columns.weights(true));
  return one(g, g.cast(dx, g.elementOf(op->getResult(0))));
}

/// Operands: the gradient, the images.
Result resizeGrad(Operation *op, GraphBuilder &g, Method method) {
  FailureOr<Images> images = Images::of(g, op->getOperand(1));
  return failed(images) ? Result(failure()) : resizeGrad(op, g, method, images->height, images->width);
}

/// Operands: images or the gradient of a result, the size of the result or the images, scales, shifts.
Result scaleAndTranslate(Operation *op, GraphBuilder &g, Images from, int64_t height, int64_t width, bool isGradient) {
  FailureOr<SmallVector<double>> scale = g.getReals(op->getOperand(2)), shift = g.getReals(op->getOperand(3));
  const SampledAxis::Named *kernel = SampledAxis::find(getText(op, "kernel_type"));
  if (failed(scale) || failed(shift))
    return failure();
  if (!kernel)
    return g.fail("'" + getText(op, "kernel_type") + "' is no kernel");
  if (scale->size() != 2 || shift->size() != 2 || !((*scale)[0] > 0) || !((*scale)[1] > 0))
    return g.fail("scales and shifts are two numbers each, scales above 0");
  auto axis = [&](int64_t i, int64_t own, int64_t other) {
    return SampledAxis(*kernel, isGradient ? other : own, isGradient ? own : other, static_cast<float>((*scale)[i]),
                       static_cast<float>((*shift)[i]), getFlag(op, "antialias"));
  };
  SampledAxis rows = axis(0, from.height, height), columns = axis(1, from.width, width);
  if (!rows.isTable() || !columns.isTable())
    return g.fail(kTooLarge);
  Value x = g.cast(op->getOperand(0), g.builder.getF32Type());
  Value result = multiply(g, x, from, height, rows.weights(isGradient), width, columns.weights(isGradient));
  return one(g, g.cast(result, g.elementOf(op->getResult(0))));
}

} // namespace

Result scaleAndTranslate(Operation *op, GraphBuilder &g) {
  FailureOr<Images> images = Images::of(g, op->getOperand(0));
  FailureOr<SmallVector<int64_t>> size = g.getConstants(op->getOperand(1));
  if (failed(images) || failed(size) || size->size() != 2 || (*size)[0] <= 0 || (*size)[1] <= 0)
    return failure();
  return scaleAndTranslate(op, g, *images, (*size)[0], (*size)[1], /*isGradient=*/false);
}

Result scaleAndTranslateGrad(Operation *op, GraphBuilder &g) {
  FailureOr<Images> grads = Images::of(g, op->getOperand(0)), images = Images::of(g, op->getOperand(1));
  if (failed(grads) || failed(images))
    return failure();
  return scaleAndTranslate(op, g, *grads, images->height, images->width, /*isGradient=*/true);
}

Result resizeArea(Operation *op, GraphBuilder &g) { return resize(op, g, Method::Area); }
Result resizeBilinear(Operation *op, GraphBuilder &g) { return resize(op, g, Method::Bilinear); }
Result resizeBicubic(Operation *op, GraphBuilder &g) { return resize(op, g, Method::Bicubic); }
Result resizeBilinearGrad(Operation *op, GraphBuilder &g) { return resizeGrad(op, g, Method::Bilinear); }
Result resizeBicubicGrad(Operation *op, GraphBuilder &g) { return resizeGrad(op, g, Method::Bicubic); }

/// Of any type, and exactly.
Result resizeNearest(Operation *op, GraphBuilder &g) {
  FailureOr<Images> images = Images::of(g, op->getOperand(0));
  FailureOr<SmallVector<int64_t>> size = g.getConstants(op->getOperand(1));
  if (failed(images) || failed(size) || size->size() != 2)
    return failure();
  Value x = op->getOperand(0);
  for (int64_t axis : {1, 2}) {
    int64_t out = (*size)[axis - 1];
    Axis along(op, Method::Nearest, axis == 1 ? images->height : images->width, out);
    if (!along.isTable())
      return g.fail(kTooLarge);
    SmallVector<int64_t> from;
    for (int64_t at = 0; at < out; ++at)
      from.push_back(along.nearest(at));
    x = g.gather(x, g.integers(from), axis);
  }
  return one(g, x);
}

/// Operands: the gradient, the size of the images.
Result resizeNearestGrad(Operation *op, GraphBuilder &g) {
  FailureOr<SmallVector<int64_t>> size = g.getConstants(op->getOperand(1));
  if (failed(size) || size->size() != 2)
    return failure();
  return resizeGrad(op, g, Method::Nearest, (*size)[0], (*size)[1]);
}

} // namespace distc::dfg::decompositions

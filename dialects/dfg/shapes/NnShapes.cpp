//===- NnShapes.cpp - Shapes of convolutions, pooling, normalization, losses ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"

using namespace mlir;

namespace distc::dfg::shapes {

// Windows, strides and paddings; so large that no sum of them overflows.
constexpr int64_t kMaxWindow = int64_t(1) << 30;

int64_t getArrayEntry(Operation *op, StringRef name, int64_t index, int64_t otherwise) {
  auto array = op->getAttrOfType<ArrayAttr>(name);
  return array && index < static_cast<int64_t>(array.size()) ? llvm::cast<IntegerAttr>(array[index]).getInt()
                                                             : otherwise;
}

ResolvedWindow resolveWindow(Dim input, int64_t window, int64_t stride, int64_t dilation, StringRef padding) {
  ResolvedWindow result;
  int64_t effective = (window - 1) * dilation + 1;
  auto divideUp = [&](Dim x) {
    return x.isConstant() ? Dim((x.getConstant() + stride - 1) / stride) : stride == 1 ? x : Dim();
  };
  if (padding == "SAME") {
    result.size = divideUp(input);
    if (result.size.isConstant() && input.isConstant()) {
      int64_t total = std::max<int64_t>((result.size.getConstant() - 1) * stride + effective - input.getConstant(), 0);
      result.before = total / 2;
      result.after = total - result.before;
    }
    return result;
  }
  result.size = divideUp(input - Dim(effective - 1));
  return result;
}

/// What TensorFlow asks of a window's attributes, on images of shape `image`.
static LogicalResult checkWindow(Operation *op, ArrayRef<Dim> image) {
  if (image.size() != 4)
    return op->emitOpError() << "needs images of rank 4, not of shape " << print(image);
  for (StringRef name : {"strides", "dilations", "ksize"}) {
    auto array = op->getAttrOfType<ArrayAttr>(name);
    if (!array)
      continue;
    if (array.size() != 4)
      return op->emitOpError() << "attribute '" << name << "' has " << array.size() << " entries, not 4";
    for (int64_t axis = 0; axis < 4; ++axis)
      if (int64_t entry = getArrayEntry(op, name, axis, 1); entry < 1 || entry > kMaxWindow)
        return op->emitOpError() << "attribute '" << name << "' has the entry " << entry << ", outside of [1, "
                                 << kMaxWindow << "]";
  }
  StringRef padding = op->getAttrOfType<StringAttr>("padding").getValue();
  auto paddings = op->getAttrOfType<ArrayAttr>("explicit_paddings");
  size_t wanted = padding == "EXPLICIT" ? 8 : 0;
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    return op->emitOpError() << "attribute 'padding' is '" << padding << "', not SAME, VALID or EXPLICIT";
  if ((paddings ? paddings.size() : 0) != wanted)
    return op->emitOpError() << "attribute 'explicit_paddings' has " << (paddings ? paddings.size() : 0)
                             << " entries, not " << wanted;
  for (size_t entry = 0; entry < wanted; ++entry)
    if (int64_t size = getArrayEntry(op, "explicit_paddings", entry, 0); size < 0 || size > kMaxWindow)
      return op->emitOpError() << "attribute 'explicit_paddings' has the entry " << size << ", outside of [0, "
                               << kMaxWindow << "]";
  return success();
}

/// Axes of height, width and channels.
struct ImageAxes {
  int64_t h, w, c;
};
static ImageAxes getImageAxes(Operation *op) {
  auto format = op->getAttrOfType<StringAttr>("data_format");
  return format && format.getValue() == "NCHW" ? ImageAxes{2, 3, 1} : ImageAxes{1, 2, 3};
}

/// The shape that a window of such sizes makes of images of shape `image`; `channels`: its channels, else the images'.
static FailureOr<Dims> getWindowShape(Operation *op, ArrayRef<Dim> image, int64_t windowH, int64_t windowW,
                                      std::optional<Dim> channels) {
  ImageAxes axes = getImageAxes(op);
  StringRef padding = op->getAttrOfType<StringAttr>("padding").getValue();
  Dims sizes(image);
  for (auto [axis, window] : {std::pair(axes.h, windowH), std::pair(axes.w, windowW)}) {
    Dim size = image[axis];
    if (window < 1 || window > kMaxWindow)
      return op->emitOpError() << "has a window of " << window << ", outside of [1, " << kMaxWindow << "]";
    if (padding == "EXPLICIT")
      size = size + Dim(getArrayEntry(op, "explicit_paddings", 2 * axis, 0) +
                        getArrayEntry(op, "explicit_paddings", 2 * axis + 1, 0));
    ResolvedWindow resolved = resolveWindow(size, window, getArrayEntry(op, "strides", axis, 1),
                                            getArrayEntry(op, "dilations", axis, 1), padding);
    if (resolved.size.isConstant() && resolved.size.getConstant() < 0)
      return op->emitOpError() << "window of " << window << " does not fit into shape " << print(image);
    sizes[axis] = resolved.size;
  }
  if (channels)
    sizes[axes.c] = *channels;
  return sizes;
}

/// What a convolution of `image` by `filter` makes; none where it is not known.
static FailureOr<std::optional<Dims>> getConvolutionShape(Operation *op, const std::optional<Dims> &image,
                                                          const std::optional<Dims> &filter, bool depthwise) {
  if (!image || !filter)
    return std::optional<Dims>();
  if (failed(checkWindow(op, *image)))
    return failure();
  if (filter->size() != 4)
    return op->emitOpError() << "needs a filter of rank 4, not of shape " << print(*filter);
  if (!(*filter)[0].isConstant() || !(*filter)[1].isConstant())
    return std::optional<Dims>();
  Dim in = (*image)[getImageAxes(op).c], taken = (*filter)[2], given = (*filter)[3];
  bool fit = depthwise ? fits(in, taken)
                       : !in.isConstant() || !taken.isConstant() ||
                             (taken.getConstant() > 0 && in.getConstant() % taken.getConstant() == 0);
  // In groups, each of which makes as many channels.
  if (fit && !depthwise && in.isConstant() && taken.isConstant() && given.isConstant() && in.getConstant() > 0)
    fit = given.getConstant() % (in.getConstant() / taken.getConstant()) == 0;
  if (!fit)
    return op->emitOpError() << "filters images of shape " << print(*image) << " by a filter of shape "
                             << print(*filter);
  FailureOr<Dims> sizes = getWindowShape(op, *image, (*filter)[0].getConstant(), (*filter)[1].getConstant(),
                                         depthwise ? taken * given : given);
  return failed(sizes) ? FailureOr<std::optional<Dims>>(failure()) : FailureOr<std::optional<Dims>>(std::move(*sizes));
}

static LogicalResult convolution(Operation *op, ShapeContext &context, bool depthwise) {
  auto sizes =
      getConvolutionShape(op, context.getShape(op->getOperand(0)), context.getShape(op->getOperand(1)), depthwise);
  if (failed(sizes))
    return failure();
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult conv2d(Operation *op, ShapeContext &context) { return convolution(op, context, false); }
LogicalResult depthwiseConv2d(Operation *op, ShapeContext &context) { return convolution(op, context, true); }

/// The gradient of a convolution by its operand `ofFilter`, whose shape operand `ofFilter` is; the other is itself
/// there.
static LogicalResult convolutionGrad(Operation *op, ShapeContext &context, unsigned ofFilter, bool depthwise) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, ofFilter);
  if (failed(sizes))
    return failure();
  auto other = context.getShape(op->getOperand(1 - ofFilter)), gradient = context.getShape(op->getOperand(2));
  auto made =
      ofFilter ? getConvolutionShape(op, other, *sizes, depthwise) : getConvolutionShape(op, *sizes, other, depthwise);
  if (failed(made))
    return failure();
  if (*made && gradient && !fits(**made, *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient)
                             << " of a convolution that makes shape " << print(**made);
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult conv2dGradInput(Operation *op, ShapeContext &context) { return convolutionGrad(op, context, 0, false); }
LogicalResult conv2dGradFilter(Operation *op, ShapeContext &context) { return convolutionGrad(op, context, 1, false); }
LogicalResult depthwiseConv2dGradInput(Operation *op, ShapeContext &context) {
  return convolutionGrad(op, context, 0, true);
}
LogicalResult depthwiseConv2dGradFilter(Operation *op, ShapeContext &context) {
  return convolutionGrad(op, context, 1, true);
}

static FailureOr<Dims> getPoolShape(Operation *op, ArrayRef<Dim> image) {
  if (failed(checkWindow(op, image)))
    return failure();
  ImageAxes axes = getImageAxes(op);
  for (StringRef name : {"ksize", "strides"})
    if (getArrayEntry(op, name, 0, 1) != 1 || getArrayEntry(op, name, axes.c, 1) != 1)
      return op->emitOpError() << "attribute '" << name << "' joins images or channels, for which there is no code";
  return getWindowShape(op, image, getArrayEntry(op, "ksize", axes.h, 1), getArrayEntry(op, "ksize", axes.w, 1),
                        std::nullopt);
}

LogicalResult pool(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<Dims> sizes = getPoolShape(op, *input);
  if (failed(sizes))
    return failure();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult maxPoolGrad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<Dims> sizes = getPoolShape(op, *input);
  if (failed(sizes))
    return failure();
  for (Value operand : op->getOperands().drop_front())
    if (auto shape = context.getShape(operand); shape && !fits(*shape, *sizes))
      return op->emitOpError() << "takes a result of shape " << print(*shape) << " of pooling that makes shape "
                               << print(*sizes);
  context.setShape(op->getResult(0), *input);
  return success();
}

/// Whether oneDNN's kernels, TensorFlow's by default, take a gradient of another shape than `made`: they read the
/// beginning of its memory as if it had that one. (TensorFlow's own kernels, of other types, go by the gradient's
/// shape.)
static bool readsAsPooled(Operation *op, ArrayRef<Dim> images, ArrayRef<Dim> gradient, ArrayRef<Dim> made) {
  Type element = getElementTypeOrSelf(op->getOperand(1).getType());
  auto format = op->getAttrOfType<StringAttr>("data_format");
  if (!(element.isF32() || element.isBF16()) || (format && format.getValue() != "NHWC") || gradient.size() != 4 ||
      !(gradient[0] == made[0]) || !(gradient[3] == made[3]))
    return false;
  int64_t given = 1, read = 1;
  for (int64_t axis : {1, 2}) {
    if (!images[axis].isConstant() || !gradient[axis].isConstant() || !made[axis].isConstant() ||
        (gradient[axis].getConstant() - 1) * getArrayEntry(op, "strides", axis, 1) > images[axis].getConstant())
      return false;
    given *= gradient[axis].getConstant();
    read *= made[axis].getConstant();
  }
  return given >= read;
}

LogicalResult avgPoolGrad(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  FailureOr<Dims> made = getPoolShape(op, **sizes);
  if (failed(made))
    return failure();
  auto gradient = context.getShape(op->getOperand(1));
  if (gradient && !fits(*gradient, *made) && !readsAsPooled(op, **sizes, *gradient, *made))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of pooling that makes shape "
                             << print(*made) << " by its attributes; they must be those of the pooling";
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult biasAdd(Operation *op, ShapeContext &context) {
  auto value = context.getShape(op->getOperand(0)), bias = context.getShape(op->getOperand(1));
  if (value && bias) {
    auto format = op->getAttrOfType<StringAttr>("data_format");
    bool channelsFirst = format && format.getValue() == "NCHW";
    if (value->size() < 2 || bias->size() != 1 || !fits((*bias)[0], channelsFirst ? (*value)[1] : value->back()))
      return op->emitOpError() << "adds a bias of shape " << print(*bias) << " to shape " << print(*value);
  }
  return sameShape(op, context);
}

LogicalResult biasAddGrad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  if (input->size() < 2)
    return op->emitOpError() << "needs a gradient of two axes or more, not of shape " << print(*input);
  bool channelsFirst = llvm::cast<BiasAddGradOp>(op).getDataFormat() == "NCHW";
  context.setShape(op->getResult(0), {channelsFirst ? (*input)[1] : input->back()});
  return success();
}

/// Fails with a diagnostic where the operands `ofChannels` are not one number a channel of `images`. The mean and the
/// variance may be empty in training.
static LogicalResult checkChannels(Operation *op, ShapeContext &context, unsigned images,
                                   ArrayRef<unsigned> ofChannels) {
  auto x = context.getShape(op->getOperand(images));
  if (!x)
    return success();
  // Version 3 takes volumes, too.
  const bool isVolume = x->size() == 5 && llvm::isa<FusedBatchNormV3Op, FusedBatchNormGradV3Op>(op);
  if (x->size() != 4 && !isVolume)
    return op->emitOpError() << "needs images of rank 4, not of shape " << print(*x);
  auto format = op->getAttrOfType<StringAttr>("data_format");
  const Dim channels = format && format.getValue().starts_with("NC") ? (*x)[1] : x->back();
  for (unsigned operand : ofChannels) {
    auto shape = context.getShape(op->getOperand(operand));
    if (!shape || (shape->size() == 1 && (fits((*shape)[0], channels) || (operand > 2 && (*shape)[0] == Dim(0)))))
      continue;
    return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape) << " with images of shape "
                             << print(*x);
  }
  return success();
}

LogicalResult batchNorm(Operation *op, ShapeContext &context) {
  auto x = context.getShape(op->getOperand(0)), scale = context.getShape(op->getOperand(1));
  if (failed(checkChannels(op, context, 0, {1, 2, 3, 4})))
    return failure();
  if (x)
    context.setShape(op->getResult(0), *x);
  if (scale)
    for (unsigned result = 1; result < 5; ++result)
      context.setShape(op->getResult(result), *scale);
  // Version 3's last is a library's workspace; there is none.
  if (op->getNumResults() > 5)
    context.setShape(op->getResult(5), {Dim()});
  return success();
}

LogicalResult batchNormGrad(Operation *op, ShapeContext &context) {
  auto x = context.getShape(op->getOperand(1)), scale = context.getShape(op->getOperand(2)),
       gradient = context.getShape(op->getOperand(0));
  if (failed(checkChannels(op, context, 1, {2, 3, 4})))
    return failure();
  if (x && gradient && !fits(*x, *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of images of shape " << print(*x);
  if (x)
    context.setShape(op->getResult(0), *x);
  if (scale)
    for (unsigned result = 1; result < 3; ++result)
      context.setShape(op->getResult(result), *scale);
  for (unsigned result = 3; result < 5; ++result)
    context.setShape(op->getResult(result), {Dim(0)});
  return success();
}

LogicalResult crossEntropy(Operation *op, ShapeContext &context) {
  auto logits = context.getShape(op->getOperand(0));
  if (!logits)
    return success();
  if (logits->size() != 2)
    return op->emitOpError() << "needs logits of rank 2, not of shape " << print(*logits);
  auto labels = context.getShape(op->getOperand(1));
  if (labels && llvm::isa<SparseSoftmaxCrossEntropyWithLogitsOp>(op)) {
    if (!fits(*labels, ArrayRef(*logits).take_front(1)))
      return op->emitOpError() << "takes labels of shape " << print(*labels) << " for logits of shape "
                               << print(*logits);
  } else if (labels && !fits(*labels, *logits)) {
    // One side may be a row for all, or a column.
    FailureOr<Dims> both = labels->size() == 2 ? broadcastShapes(op, *logits, *labels) : FailureOr<Dims>(failure());
    if (labels->size() != 2)
      return op->emitOpError() << "takes labels of shape " << print(*labels) << " for logits of shape "
                               << print(*logits);
    if (failed(both))
      return failure();
    *logits = *both;
  }
  context.setShape(op->getResult(0), {(*logits)[0]});
  context.setShape(op->getResult(1), *logits);
  return success();
}

} // namespace distc::dfg::shapes

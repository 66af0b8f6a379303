//===- Volumes.cpp - Convolutions of three axes -------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Zeros around the input and between its elements are written out, so that what is
// left is one of TensorFlow's convolutions of volumes, or the gradient of its filter.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace distc::stablehlo {

using Dim = dfg::Dim;
using Dims = dfg::Dims;

namespace {

/// A convolution of volumes [n, d, h, w, c], padded already, by a kernel [d, h, w, in, out], to volumes.
struct VolumeConvolution {
  dfg::GraphBuilder &g;
  Value input, kernel;
  Ints strides, dilations;
  /// Sizes of the result.
  Ints sizes;

  SmallVector<NamedAttribute> getAttributes(ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations) const {
    auto entries = [&](ArrayRef<int64_t> list) { return g.builder.getI64ArrayAttr({1, list[0], list[1], list[2], 1}); };
    return {g.attribute("strides", entries(strides)), g.attribute("dilations", entries(dilations)),
            g.attribute("padding", g.builder.getStringAttr("VALID"))};
  }

  Value make(int64_t groups) const {
    FailureOr<Dims> shape = g.getShape(input), window = g.getShape(kernel);
    if (failed(shape) || failed(window))
      return {};
    if (groups == 1)
      return (*shape)[4].dependsOnBatch() ? makeKernelGradient(*shape, *window)
                                          : g.make<dfg::Conv3DOp>({input, kernel}, getAttributes(strides, dilations));
    return makeGroups(groups, 4);
  }

  /// Each group has its part of the input, along `axis`, and of the kernel's features. Groups of examples (axis 0) are
  /// those of the gradient of a kernel with groups of features (axis 4).
  Value makeGroups(int64_t groups, int64_t axis) const {
    FailureOr<Dims> shape = g.getShape(input), window = g.getShape(kernel);
    if (failed(shape) || failed(window))
      return {};
    const Dim all = (*shape)[axis], features = (*window)[4];
    if (!all.isConstant() || !features.isConstant() || all.getConstant() % groups || features.getConstant() % groups)
      return (void)g.fail("has groups that its " + llvm::Twine(axis == 0 ? "operands" : "features") +
                          " do not divide into"),
             Value();
    const int64_t ofInput = all.getConstant() / groups, ofKernel = features.getConstant() / groups;
    SmallVector<Value> parts;
    for (int64_t group = 0; group < groups; ++group) {
      VolumeConvolution part{g,
                             g.slice(input, axis, group * ofInput, ofInput),
                             g.slice(kernel, 4, group * ofKernel, ofKernel),
                             strides,
                             dilations,
                             sizes};
      parts.push_back(part.make(1));
      if (!parts.back())
        return {};
    }
    return g.concat(parts, 4);
  }

private:
  /// The input's features are the examples of the batch, of which the kernel's are the gradients.
  Value makeKernelGradient(ArrayRef<Dim> shape, ArrayRef<Dim> window) const {
    if (!shape[0].isConstant() || !window[4].isConstant())
      return (void)g.fail("sums over the batch in a form that is no gradient of a kernel"), Value();
    Value x = g.transpose(input, {4, 1, 2, 3, 0}), dy = g.transpose(kernel, {3, 0, 1, 2, 4});
    for (int axis = 0; axis < 3; ++axis) {
      // As much as the windows reach, no more.
      int64_t reached = (window[axis].getConstant() - 1) * dilations[axis] + (sizes[axis] - 1) * strides[axis] + 1;
      if (reached < shape[axis + 1].getConstant())
        x = g.slice(x, axis + 1, 0, reached);
    }
    Value filter = g.integers({sizes[0], sizes[1], sizes[2], shape[0].getConstant(), window[4].getConstant()});
    Value gradient = g.make<dfg::Conv3DBackpropFilterV2Op>({x, filter, dy}, getAttributes(dilations, strides));
    return g.transpose(gradient, {3, 0, 1, 2, 4});
  }
};

} // namespace

Converter::Result Converter::convolveVolumes(Operation *op, Value input, Value kernel, ArrayRef<int64_t> outputOrder,
                                             Builder &g) {
  FailureOr<Dims> shape = g.getShape(input), window = g.getShape(kernel);
  auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (failed(shape) || failed(window) || !type)
    return failure();
  for (int axis = 0; axis < 3; ++axis)
    if (!(*shape)[axis + 1].isConstant() || !(*window)[axis].isConstant())
      return fail(g, "is of volumes of unknown size");
  auto getList = [&](StringRef name) {
    Ints list = getInts(op, name);
    list.resize(3, 1);
    return list;
  };
  Ints padding = getInts(op, "padding"), spread = getList("lhs_dilation");
  padding.resize(6, 0);
  Ints low = {0, padding[0], padding[2], padding[4], 0}, high = {0, padding[1], padding[3], padding[5], 0};
  Ints interior = {0, spread[0] - 1, spread[1] - 1, spread[2] - 1, 0};
  VolumeConvolution convolution{
      g, padAll(g, input, low, high, interior, Value()), kernel, getList("window_strides"), getList("rhs_dilation"),
      {}};
  for (int axis = 0; axis < 3; ++axis)
    convolution.sizes.push_back(type.getDimSize(outputOrder[axis + 1]));
  if (!convolution.input)
    return failure();
  const int64_t ofExamples = getInt(op, "batch_group_count", 1);
  Value result =
      ofExamples > 1 ? convolution.makeGroups(ofExamples, 0) : convolution.make(getInt(op, "feature_group_count", 1));
  if (!result)
    return failure();
  return one(g, g.transpose(result, invertPermutationVector(outputOrder)));
}

} // namespace distc::stablehlo

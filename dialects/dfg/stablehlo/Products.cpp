//===- Products.cpp - Contractions and convolutions --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace distc::stablehlo {

// ---- Contractions
// ----------------------------------------------------------------------------------------------------

namespace {

/// An operand of a contraction as a matrix of two groups of axes, those that are summed over and those that are kept.
struct Factor {
  Value matrix;
  dfg::Dims kept;
  /// Whether the axes that are summed over come first.
  bool isTurned = false;
  bool keepsBatch = false, sumsBatch = false;

  /// None where an axis of the batch would have to be joined with others.
  static std::optional<Factor> get(dfg::GraphBuilder &g, Value x, ArrayRef<dfg::Dim> shape, ArrayRef<int64_t> summed) {
    Factor factor;
    factor.isTurned = llvm::is_contained(summed, 0);
    Ints keptAxes;
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      if (!llvm::is_contained(summed, axis)) {
        keptAxes.push_back(axis);
        factor.kept.push_back(shape[axis]);
      }
    auto join = [&](ArrayRef<int64_t> axes, bool &hasBatch) -> std::optional<dfg::Dim> {
      dfg::Dim size = 1;
      for (int64_t axis : axes) {
        hasBatch |= !shape[axis].isConstant();
        size = size * shape[axis];
      }
      return size.isKnown() && (!hasBatch || axes.size() == 1) ? std::optional(size) : std::nullopt;
    };
    std::optional<dfg::Dim> rows = join(keptAxes, factor.keepsBatch), columns = join(summed, factor.sumsBatch);
    // A reshape finds one size.
    if (!rows || !columns || (factor.keepsBatch && factor.sumsBatch && shape.size() != 2))
      return std::nullopt;
    Ints order(factor.isTurned ? summed : ArrayRef<int64_t>(keptAxes));
    order.append(factor.isTurned ? keptAxes : Ints(summed));
    factor.matrix = g.transpose(x, order);
    if (shape.size() != 2)
      factor.matrix =
          factor.isTurned ? g.reshape(factor.matrix, {*columns, *rows}) : g.reshape(factor.matrix, {*rows, *columns});
    return factor;
  }
};

/// Whether axes of both operands, or one of them and what is summed over, are of the batch.
bool meetsBatchTwice(ArrayRef<dfg::Dim> left, ArrayRef<dfg::Dim> right, ArrayRef<int64_t> sumLeft,
                     ArrayRef<int64_t> sumRight) {
  auto isAxis = [](ArrayRef<dfg::Dim> shape) {
    return [size = static_cast<int64_t>(shape.size())](int64_t axis) { return axis >= 0 && axis < size; };
  };
  if (!llvm::all_of(sumLeft, isAxis(left)) || !llvm::all_of(sumRight, isAxis(right)))
    return false;
  auto count = [](ArrayRef<dfg::Dim> shape) {
    return llvm::count_if(shape, [](dfg::Dim size) { return !size.isConstant(); });
  };
  int64_t summed = llvm::count_if(sumLeft, [&](int64_t axis) { return !left[axis].isConstant(); });
  return count(left) + count(right) - summed >= 2;
}

} // namespace

Converter::Result Converter::dotGeneral(Operation *op, Values operands, Builder &g) {
  std::optional<DimensionNumbers> numbers = DimensionNumbers::get(op, "dot_dimension_numbers");
  FailureOr<Dims> left = g.getShape(operands[0]), right = g.getShape(operands[1]);
  if (!numbers || failed(left) || failed(right))
    return fail(g, "has no dot_dimension_numbers");
  const Ints &batchLeft = (*numbers)["lhs_batching_dimensions"], &batchRight = (*numbers)["rhs_batching_dimensions"];
  const Ints &sumLeft = (*numbers)["lhs_contracting_dimensions"], &sumRight = (*numbers)["rhs_contracting_dimensions"];
  Type element = elementOfResult(op);
  Value a = widenOperand(g, op, 0, operands[0], element), b = widenOperand(g, op, 1, operands[1], element);
  if (batchLeft.empty() && left->size() == 2 && right->size() == 2 && sumLeft.size() == 1 && sumRight.size() == 1)
    return one(g, g.matMul(a, b, sumLeft[0] == 0, sumRight[0] == 1));
  if (left->size() + right->size() > 26 * 2 || batchLeft.size() != batchRight.size() ||
      sumLeft.size() != sumRight.size())
    return fail(g, "has dot_dimension_numbers that do not belong together");
  // Examples beside each other: of an einsum one axis is the batch's, of a product two may be.
  if (batchLeft.empty() && meetsBatchTwice(*left, *right, sumLeft, sumRight)) {
    std::optional<Factor> first = Factor::get(g, a, *left, sumLeft), second = Factor::get(g, b, *right, sumRight);
    if (first && second &&
        (!first->keepsBatch || !second->keepsBatch || first->kept.size() + second->kept.size() == 2)) {
      Value product = g.matMul(first->matrix, second->matrix, first->isTurned, !second->isTurned);
      Dims shape = first->kept;
      shape.append(second->kept);
      return one(g, shape.size() == 2 ? product : g.reshape(product, shape));
    }
  }
  std::string names[2] = {std::string(left->size(), ' '), std::string(right->size(), ' ')}, result;
  Dims sizes;
  char next = 'a';
  auto both = [&](ArrayRef<int64_t> x, ArrayRef<int64_t> y, bool isKept) {
    for (auto [i, j] : llvm::zip(x, y)) {
      if (i < 0 || j < 0 || i >= static_cast<int64_t>(names[0].size()) || j >= static_cast<int64_t>(names[1].size()))
        return;
      names[0][i] = names[1][j] = next;
      if (isKept) {
        result += next;
        sizes.push_back((*left)[i]);
      }
      ++next;
    }
  };
  both(batchLeft, batchRight, true);
  both(sumLeft, sumRight, false);
  for (auto [name, shape] : {std::pair(&names[0], &*left), std::pair(&names[1], &*right)})
    for (auto [axis, letter] : llvm::enumerate(*name))
      if (letter == ' ') {
        letter = next;
        result += next++;
        sizes.push_back((*shape)[axis]);
      }
  Value product = g.make<dfg::EinsumOp>(
      {a, b}, g.attribute("equation", g.builder.getStringAttr(names[0] + "," + names[1] + "->" + result)));
  // What it is made of is known when the batch is: two of the sizes may be the batch's.
  if (product && !g.shapes.getShape(product)) {
    product.setType(RankedTensorType::get(
        llvm::map_to_vector(
            sizes, [](dfg::Dim size) { return size.isConstant() ? size.getConstant() : ShapedType::kDynamic; }),
        element));
    g.shapes.setShape(product, sizes);
  }
  return one(g, product);
}

// ---- Convolutions --------------------------------------------------------------------------------------------------

namespace {

using Dim = dfg::Dim;
using Dims = dfg::Dims;

/// A convolution of images [n, h, w, c] by a kernel [h, w, in, out], to images.
struct Convolution {
  dfg::GraphBuilder &g;
  Value input, kernel;
  Ints strides, inputDilations, kernelDilations, low, high;
  int64_t groups = 1;
  /// Of a kernel's gradient: each channel has outputs of its own.
  bool isDepthwise = false;
  /// `kernel` before its height and width were reversed, if they were.
  Value unreversed;

  NamedAttribute array(StringRef name, ArrayRef<int64_t> values) {
    return g.attribute(name, g.builder.getI64ArrayAttr(values));
  }
  /// Of height and width, with padding that is no less than nothing.
  SmallVector<NamedAttribute> getAttributes(ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                                            ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
    return {array("strides", {1, strides[0], strides[1], 1}), array("dilations", {1, dilations[0], dilations[1], 1}),
            g.attribute("padding", g.builder.getStringAttr("EXPLICIT")),
            array("explicit_paddings", {0, 0, low[0], high[0], low[1], high[1], 0, 0})};
  }
  static bool areOnes(ArrayRef<int64_t> list) {
    return llvm::all_of(list, [](int64_t entry) { return entry == 1; });
  }

  /// As the gradient of the input of a convolution with `inputDilations` as strides; null where it is none, or `kernel`
  /// would have to be reversed for nothing.
  Value asInputGradient(ArrayRef<Dim> images, ArrayRef<Dim> window) {
    if (!areOnes(strides) || groups != 1 || (areOnes(inputDilations) && !unreversed))
      return {};
    Ints before, behind;
    Dims sizes = {images[0], Dim(), Dim(), window[3]};
    for (int axis = 0; axis < 2; ++axis) {
      int64_t stride = inputDilations[axis], size = images[axis + 1].getConstant();
      int64_t span = (window[axis].getConstant() - 1) * kernelDilations[axis] + 1;
      int64_t result = (size - 1) * stride + 1 + low[axis] + high[axis] - span + 1;
      // The other way: `size` windows of the result.
      before.push_back(span - 1 - low[axis]);
      behind.push_back((size - 1) * stride + span - result - before.back());
      if (before.back() < 0 || result < 1)
        return {};
      // What no window reaches.
      if (behind.back() < 0) {
        if (-behind.back() >= stride)
          return {};
        behind.back() = 0;
      }
      sizes[axis + 1] = Dim(result);
    }
    Value turned = unreversed ? unreversed : g.make<dfg::ReverseV2Op>({kernel, g.integers({0, 1})});
    // Its inputs are this one's outputs.
    turned = g.transpose(turned, {0, 1, 3, 2});
    return g.make<dfg::Conv2DBackpropInputOp>({g.sizes(sizes, input), turned, input},
                                              getAttributes(inputDilations, kernelDilations, before, behind),
                                              dfg::GraphBuilder::elementOf(input));
  }

  /// The images, dilated and cut so that padding is no less than nothing.
  Value prepare(Ints &before, Ints &behind) {
    Value x = input;
    before = low;
    behind = high;
    FailureOr<Dims> shape = g.getShape(x);
    if (failed(shape))
      return {};
    for (int axis = 0; axis < 2; ++axis) {
      int64_t size = (*shape)[axis + 1].getConstant(), step = inputDilations[axis];
      if (step > 1 && size > 1) {
        Dims spread = *shape;
        spread[axis + 1] = Dim(size * step);
        x = g.reshape(g.padAxis(g.expandDims(x, axis + 2), axis + 2, 0, step - 1), spread);
        size = (size - 1) * step + 1;
        x = g.slice(x, axis + 1, 0, size);
        if (failed(shape = g.getShape(x)))
          return {};
      }
      int64_t cutBefore = std::max<int64_t>(-before[axis], 0), cutBehind = std::max<int64_t>(-behind[axis], 0);
      if (cutBefore + cutBehind == 0)
        continue;
      x = g.slice(x, axis + 1, cutBefore, size - cutBefore - cutBehind);
      before[axis] += cutBefore;
      behind[axis] += cutBehind;
      if (failed(shape = g.getShape(x)))
        return {};
    }
    return x;
  }

  Value make() {
    FailureOr<Dims> images = g.getShape(input), window = g.getShape(kernel);
    if (failed(images) || failed(window))
      return {};
    for (int axis = 0; axis < 2; ++axis)
      if (!(*images)[axis + 1].isConstant() || !(*window)[axis].isConstant())
        return (void)g.fail("is of images of unknown size"), Value();
    if (Value gradient = asInputGradient(*images, *window))
      return gradient;
    Ints before, behind;
    Value x = prepare(before, behind);
    SmallVector<NamedAttribute> attributes = getAttributes(strides, kernelDilations, before, behind);
    if (groups == 1)
      return g.make<dfg::Conv2DOp>({x, kernel}, attributes);
    int64_t channels = (*images)[3].getConstant(), features = (*window)[3].getConstant();
    if (channels % groups || features % groups)
      return (void)g.fail("has groups that its features do not divide into"), Value();
    if (channels == groups && areOnes(kernelDilations)) {
      // A channel a group: its outputs lie side by side.
      Value each = g.reshape(kernel, {(*window)[0], (*window)[1], Dim(groups), Dim(features / groups)});
      return g.make<dfg::DepthwiseConv2dNativeOp>({x, each}, attributes);
    }
    SmallVector<Value> parts;
    for (int64_t group = 0; group < groups; ++group)
      parts.push_back(g.make<dfg::Conv2DOp>({g.slice(x, 3, group * (channels / groups), channels / groups),
                                             g.slice(kernel, 3, group * (features / groups), features / groups)},
                                            attributes));
    return g.concat(parts, 3);
  }

  /// As the gradient of a kernel: the input's features are the examples of the batch, of which the kernel's are the
  /// gradients. Gives [h, w, in, out], `in` being the input's examples; of a depthwise convolution's kernel [h, w, 1,
  /// in * multiplier].
  Value asKernelGradient(ArrayRef<int64_t> sizes) {
    FailureOr<Dims> images = g.getShape(input), window = g.getShape(kernel);
    if (failed(images) || failed(window))
      return {};
    // [channels, h, w, batch] and [h, w, batch, features].
    Value x = g.transpose(input, {3, 1, 2, 0}), dy = g.transpose(kernel, {2, 0, 1, 3});
    Ints before(low), behind;
    for (int axis = 0; axis < 2; ++axis) {
      int64_t size = (*images)[axis + 1].getConstant(), count = (*window)[axis].getConstant();
      if (before[axis] < 0) {
        x = g.slice(x, axis + 1, -before[axis], size + before[axis]);
        size += before[axis];
        before[axis] = 0;
      }
      // As much as the windows reach, no more and no less.
      int64_t reached = (count - 1) * kernelDilations[axis] + (sizes[axis] - 1) * strides[axis] + 1;
      behind.push_back(reached - size - before[axis]);
      if (behind.back() < 0) {
        x = g.slice(x, axis + 1, 0, size + behind.back());
        behind.back() = 0;
      }
    }
    const int64_t inputs = (*images)[0].getConstant(), outputs = (*window)[3].getConstant();
    SmallVector<NamedAttribute> attributes = getAttributes(kernelDilations, strides, before, behind);
    if (!isDepthwise)
      return g.make<dfg::Conv2DBackpropFilterOp>({x, g.integers({sizes[0], sizes[1], inputs, outputs}), dy},
                                                 attributes);
    Value gradient = g.make<dfg::DepthwiseConv2dNativeBackpropFilterOp>(
        {x, g.integers({sizes[0], sizes[1], inputs, outputs / inputs}), dy}, attributes);
    return g.reshape(gradient, {Dim(sizes[0]), Dim(sizes[1]), Dim(1), Dim(outputs)});
  }
};

/// The permutation that brings `axes` to [first, spatial..., second].
Ints getOrder(const ConvolutionNumbers::Axes &axes, bool isKernel) {
  Ints order(axes.spatial);
  if (!isKernel)
    order.insert(order.begin(), axes.first);
  else
    order.push_back(axes.first);
  order.push_back(axes.second);
  return order;
}

/// What `value` is with `axes` reversed, and no others; null where it is not made so.
Value getReversed(Value value, Ints axes, dfg::GraphBuilder &g) {
  auto reverse = value.getDefiningOp<dfg::ReverseV2Op>();
  if (!reverse)
    return {};
  std::optional<SmallVector<int64_t>> reversed = g.shapes.getConstants(reverse->getOperand(1));
  if (!reversed)
    return {};
  llvm::sort(*reversed);
  llvm::sort(axes);
  return llvm::equal(*reversed, axes) ? reverse->getOperand(0) : Value();
}

} // namespace

Converter::Result Converter::convolution(Operation *op, Values operands, Builder &g) {
  std::optional<ConvolutionNumbers> numbers = ConvolutionNumbers::get(op, "dimension_numbers");
  if (!numbers)
    return fail(g, "has no dimension_numbers");
  size_t rank = numbers->input.spatial.size();
  if (rank < 1 || rank > 3)
    return fail(g, "is a convolution of " + Twine(rank) + " axes; there is code for one, two or three");
  FailureOr<Dims> inputShape = g.getShape(operands[0]), kernelShape = g.getShape(operands[1]);
  if (failed(inputShape) || failed(kernelShape) || inputShape->size() != rank + 2 || kernelShape->size() != rank + 2)
    return fail(g, "has operands that its dimension_numbers are not of");
  for (bool reversed : getFlags(op, "window_reversal"))
    if (reversed)
      return fail(g, "reverses its window");
  Type element = elementOfResult(op);
  if (!llvm::isa<FloatType>(element))
    return fail(g, "is a convolution of integers");
  if (rank == 3)
    return convolveVolumes(op,
                           g.transpose(widenOperand(g, op, 0, operands[0], element), getOrder(numbers->input, false)),
                           g.transpose(widenOperand(g, op, 1, operands[1], element), getOrder(numbers->kernel, true)),
                           getOrder(numbers->output, false), g);
  Convolution conv{g,
                   g.transpose(widenOperand(g, op, 0, operands[0], element), getOrder(numbers->input, false)),
                   g.transpose(widenOperand(g, op, 1, operands[1], element), getOrder(numbers->kernel, true)),
                   getInts(op, "window_strides"),
                   getInts(op, "lhs_dilation"),
                   getInts(op, "rhs_dilation"),
                   {},
                   {},
                   getInt(op, "feature_group_count", 1)};
  Ints padding = getInts(op, "padding");
  padding.resize(2 * rank, 0);
  if (Value unreversed = getReversed(operands[1], numbers->kernel.spatial, g))
    conv.unreversed = g.transpose(g.cast(unreversed, element), getOrder(numbers->kernel, true));
  for (size_t axis = 0; axis < rank; ++axis) {
    conv.low.push_back(padding[2 * axis]);
    conv.high.push_back(padding[2 * axis + 1]);
  }
  for (Ints *list : {&conv.strides, &conv.inputDilations, &conv.kernelDilations})
    list->resize(rank, 1);
  for (const Ints &list : {conv.strides, conv.inputDilations, conv.kernelDilations})
    if (llvm::any_of(list, [](int64_t entry) { return entry < 1; }))
      return fail(g, "has strides or dilations of less than 1");
  if (rank == 1) {
    // Images of height 1.
    conv.input = g.expandDims(conv.input, 1);
    conv.kernel = g.expandDims(conv.kernel, 0);
    if (conv.unreversed)
      conv.unreversed = g.expandDims(conv.unreversed, 0);
    for (Ints *list : {&conv.strides, &conv.inputDilations, &conv.kernelDilations})
      list->insert(list->begin(), 1);
    for (Ints *list : {&conv.low, &conv.high})
      list->insert(list->begin(), 0);
  }
  FailureOr<Dims> images = g.getShape(conv.input), window = g.getShape(conv.kernel);
  auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (failed(images) || failed(window) || !type)
    return failure();
  auto makeOne = [&](Convolution &part) -> Value {
    FailureOr<Dims> images = g.getShape(part.input);
    if (failed(images) || !(*images)[3].dependsOnBatch())
      return part.make();
    if (!Convolution::areOnes(part.inputDilations) && (*images)[1].isConstant() && (*images)[2].isConstant()) {
      // Of a transposed convolution: zeros between the elements.
      Ints none(4, 0), interior = {0, part.inputDilations[0] - 1, part.inputDilations[1] - 1, 0};
      part.input = padAll(g, part.input, none, none, interior, g.scalar(element, 0));
      part.inputDilations.assign(2, 1);
      images = g.getShape(part.input);
      if (failed(images))
        return {};
    }
    if (!Convolution::areOnes(part.inputDilations) || part.groups != 1 || !(*images)[0].isConstant())
      return (void)g.fail("sums over the batch in a form that is no gradient of a kernel"), Value();
    Ints sizes;
    for (int64_t axis : numbers->output.spatial)
      sizes.push_back(type.getDimSize(axis));
    if (rank == 1)
      sizes.insert(sizes.begin(), 1);
    // [h, w, in, out] as images [in, h, w, out].
    return g.transpose(part.asKernelGradient(sizes), {2, 0, 1, 3});
  };
  Value result;
  if (int64_t groups = getInt(op, "batch_group_count", 1); groups > 1) {
    // The gradient of a kernel with groups: each group's examples by its features.
    Dim examples = (*images)[0], features = (*window)[3];
    if (!examples.isConstant() || !features.isConstant() || examples.getConstant() % groups ||
        features.getConstant() % groups || conv.groups != 1)
      return fail(g, "has groups that its operands do not divide into");
    int64_t ofInput = examples.getConstant() / groups, ofKernel = features.getConstant() / groups;
    conv.isDepthwise = ofInput == 1 && (*images)[3].dependsOnBatch() && Convolution::areOnes(conv.strides);
    if (conv.isDepthwise) {
      result = makeOne(conv);
    } else {
      Values parts;
      for (int64_t group = 0; group < groups; ++group) {
        Convolution part = conv;
        part.input = g.slice(conv.input, 0, group * ofInput, ofInput);
        part.kernel = g.slice(conv.kernel, 3, group * ofKernel, ofKernel);
        part.unreversed = {};
        parts.push_back(makeOne(part));
      }
      result = g.concat(parts, 3);
    }
  } else {
    result = makeOne(conv);
  }
  FailureOr<Dims> shape = g.getShape(result);
  if (failed(shape))
    return failure();
  if (rank == 1)
    result = g.reshape(result, {(*shape)[0], (*shape)[2], (*shape)[3]});
  // [n, h, w, c] to where the axes should be.
  return one(g, g.transpose(result, invertPermutationVector(getOrder(numbers->output, false))));
}

} // namespace distc::stablehlo

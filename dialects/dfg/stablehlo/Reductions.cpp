//===- Reductions.cpp - Reductions over axes and windows, largest elements ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include "dialects/dfg/stablehlo/ScalarRegion.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cmath>

using namespace mlir;

namespace distc::stablehlo {

// ---- Over axes
// --------------------------------------------------------------------------------------------------------

Value Converter::reduceAxes(Builder &g, Combination combination, Value x, ArrayRef<int64_t> axes, bool isUnsigned) {
  Type element = Builder::elementOf(x);
  const bool isBool = element && element.isInteger(1);
  switch (combination) {
  case Combination::Add:
    return g.sum(x, axes);
  case Combination::Mul:
    return g.reduce(dfg::ProdOp::getOperationName(), x, axes, false);
  case Combination::Max:
  case Combination::Min: {
    StringRef kind = combination == Combination::Max ? dfg::MaxOp::getOperationName() : dfg::MinOp::getOperationName();
    Value result = g.reduce(kind, isUnsigned ? flipSign(g, x) : x, axes, false);
    return isUnsigned ? flipSign(g, result) : result;
  }
  case Combination::And:
  case Combination::Or:
    if (isBool)
      return g.reduce(combination == Combination::And ? dfg::AllOp::getOperationName() : dfg::AnyOp::getOperationName(),
                      x, axes, false);
    return (void)g.fail("reduces the bits of integers"), Value();
  case Combination::Xor: {
    if (!isBool)
      return (void)g.fail("reduces the bits of integers"), Value();
    Value count = g.sum(g.cast(x, g.builder.getI32Type()), axes);
    return g.equal(g.make<dfg::BitwiseAndOp>({count, g.integer(1)}), g.integer(1));
  }
  case Combination::Assign:
    break;
  }
  return (void)g.fail("has a region that is no reduction"), Value();
}

namespace {

/// Whether the region keeps the larger (the smaller) of two elements and its position, a NaN before all numbers, and of
/// equal ones the first: JAX's argmax.
bool isArgExtremum(Region &region, bool isMax) {
  const double numbers[] = {-1.0, 0.0, 1.0, -INFINITY, INFINITY, NAN};
  for (double x : numbers)
    for (double y : numbers)
      for (auto [i, j] : {std::pair(0.0, 1.0), std::pair(1.0, 0.0)}) {
        auto results = runScalarRegion(region, {x, i, y, j});
        if (!results || results->size() != 2)
          return false;
        bool first = std::isnan(x) || std::isnan(y) ? std::isnan(x) && (!std::isnan(y) || i < j)
                     : x == y                       ? i < j
                                                    : (x > y) == isMax;
        double value = first ? x : y, at = first ? i : j;
        // Two NaNs: which of the two positions is not said.
        if (std::isnan(x) && std::isnan(y))
          at = (*results)[1];
        if ((*results)[1] != at || !((*results)[0] == value || (std::isnan((*results)[0]) && std::isnan(value))))
          return false;
      }
  return true;
}

} // namespace

Converter::Result Converter::reduce(Operation *op, Values operands, Builder &g) {
  if (op->getNumRegions() != 1 || operands.size() % 2 != 0 || operands.empty())
    return fail(g, "has no region that reduces");
  size_t count = operands.size() / 2;
  Ints axes = getInts(op, "dimensions");
  Region &region = op->getRegion(0);
  if (count == 1) {
    std::optional<Combination> combination = getCombination(region);
    if (!combination || *combination == Combination::Assign)
      return fail(g, "reduces by a function that is not a sum, product, maximum, minimum, conjunction or disjunction");
    const bool natural = isUnsigned(op->getOperand(0));
    Value result = axes.empty() ? operands[0] : reduceAxes(g, *combination, operands[0], axes, natural);
    if (!isIdentity(op->getOperand(1), *combination))
      result = combine(g, *combination, result, operands[1], natural);
    return one(g, result);
  }
  Type element = Builder::elementOf(operands[0]);
  bool isMax = count == 2 && isArgExtremum(region, true), isMin = count == 2 && isArgExtremum(region, false);
  if (axes.size() != 1 || !(isMax || isMin) || !isPosition(op->getOperand(1), axes[0]) ||
      !isIdentity(op->getOperand(2), isMax ? Combination::Max : Combination::Min) ||
      !isIdentity(op->getOperand(3), Combination::Add))
    return fail(g, "reduces several operands together, which there is code for where they are an argmax or argmin");
  Type position = elementOfResult(op, 1);
  auto positionOf = [&](Value x, bool largest) {
    Value axis = g.integer(axes[0]);
    return largest ? g.make<dfg::ArgMaxOp>({x, axis}, {}, position) : g.make<dfg::ArgMinOp>({x, axis}, {}, position);
  };
  const bool isBool = element.isInteger(1), natural = isUnsigned(op->getOperand(0));
  Value value = reduceAxes(g,
                           isBool  ? isMax ? Combination::Or : Combination::And
                           : isMax ? Combination::Max
                                   : Combination::Min,
                           operands[0], axes, natural);
  Value at = positionOf(isBool    ? g.cast(operands[0], g.builder.getI32Type())
                        : natural ? orderKey(g, operands[0], natural, /*joinsZeros=*/false)
                                  : operands[0],
                        isMax);
  if (llvm::isa<FloatType>(element)) {
    // The first NaN, where there is one.
    Value isNan = g.make<dfg::IsNanOp>(operands[0], {}, g.builder.getI1Type());
    Value any = g.reduce(dfg::AnyOp::getOperationName(), isNan, axes, false);
    at = g.select(any, positionOf(g.cast(isNan, g.builder.getF32Type()), true), at);
  }
  if (g.failed())
    return failure();
  return Values{value, at};
}

// ---- Over windows --------------------------------------------------------------------------------------------------

namespace {

/// The windows of an operation, an entry an axis.
struct WindowForm {
  Ints sizes, strides, inputDilations, windowDilations, low, high;

  static std::optional<WindowForm> get(Operation *op, size_t rank) {
    WindowForm form{getInts(op, "window_dimensions"),
                    getInts(op, "window_strides"),
                    getInts(op, "base_dilations"),
                    getInts(op, "window_dilations"),
                    {},
                    {}};
    for (Ints *list : {&form.strides, &form.inputDilations, &form.windowDilations})
      if (list->empty())
        list->assign(rank, 1);
    Ints padding = getInts(op, "padding");
    if (padding.empty())
      padding.assign(2 * rank, 0);
    else if (padding.size() == 1)
      padding.assign(2 * rank, padding[0]);
    if (padding.size() != 2 * rank)
      return std::nullopt;
    for (size_t axis = 0; axis < rank; ++axis) {
      form.low.push_back(padding[2 * axis]);
      form.high.push_back(padding[2 * axis + 1]);
    }
    for (Ints *list : {&form.sizes, &form.strides, &form.inputDilations, &form.windowDilations})
      if (list->size() != rank || llvm::any_of(*list, [](int64_t entry) { return entry < 1; }))
        return std::nullopt;
    return form;
  }

  static bool areOnes(ArrayRef<int64_t> list) {
    return llvm::all_of(list, [](int64_t entry) { return entry == 1; });
  }
  bool isTrivial(size_t axis) const { return sizes[axis] == 1 && strides[axis] == 1; }
  /// Whether they are windows of at most two axes, without dilations, of what has been padded: a pool of images.
  bool isPool() const {
    size_t axes = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      axes += !isTrivial(axis);
    return axes > 0 && axes <= 2 && areOnes(windowDilations);
  }
  /// The axis of which each window is all elements up to one, or from it on (jnp.cumsum); none where windows are
  /// others.
  std::optional<size_t> getCumulativeAxis(ArrayRef<dfg::Dim> shape) const {
    if (!areOnes(strides) || !areOnes(inputDilations) || !areOnes(windowDilations))
      return std::nullopt;
    std::optional<size_t> found;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 1 && low[axis] == 0 && high[axis] == 0)
        continue;
      if (found || shape[axis] != dfg::Dim(sizes[axis]) || low[axis] + high[axis] != sizes[axis] - 1 ||
          (low[axis] != 0 && high[axis] != 0))
        return std::nullopt;
      found = axis;
    }
    return found;
  }
  int64_t getTaps() const {
    int64_t taps = 1;
    for (int64_t size : sizes)
      taps *= size;
    return taps;
  }
};

/// More are as many nodes.
constexpr int64_t kMaxTaps = 512;

/// The axes of a pool as those of images [n, h, w, c]: the first axis without windows (the batch) is n, the others c.
class Images {
public:
  Images(dfg::GraphBuilder &g, const WindowForm &form, ArrayRef<dfg::Dim> shape) : g(g) {
    Ints windows, rest;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      (form.isTrivial(axis) ? rest : windows).push_back(axis);
    hasBatch = !rest.empty();
    if (hasBatch)
      order.push_back(rest.front());
    order.append(windows);
    if (hasBatch)
      order.append(rest.begin() + 1, rest.end());
    numWindows = windows.size();
    sizes = {1, 1, 1, 1};
    strides = sizes;
    for (auto [i, axis] : llvm::enumerate(windows)) {
      sizes[1 + i] = form.sizes[axis];
      strides[1 + i] = form.strides[axis];
    }
    for (int64_t axis : order)
      ordered.push_back(shape[axis]);
  }

  Value from(Value x) {
    FailureOr<dfg::Dims> shape = g.getShape(x = g.transpose(x, order));
    return failed(shape) ? Value() : g.reshape(x, merge(*shape));
  }

  /// `like`: the shape, of which only the windows' axes differ.
  Value back(Value images) {
    FailureOr<dfg::Dims> shape = g.getShape(images);
    if (failed(shape))
      return {};
    dfg::Dims split(ordered);
    for (size_t i = 0; i < numWindows; ++i)
      split[hasBatch + i] = (*shape)[1 + i];
    return g.transpose(*shape == split ? images : g.reshape(images, split), invertPermutationVector(order));
  }

  SmallVector<NamedAttribute> getAttributes() {
    return {g.attribute("ksize", g.builder.getI64ArrayAttr(sizes)),
            g.attribute("strides", g.builder.getI64ArrayAttr(strides)),
            g.attribute("padding", g.builder.getStringAttr("VALID"))};
  }

private:
  dfg::Dims merge(ArrayRef<dfg::Dim> shape) const {
    dfg::Dims merged;
    merged.push_back(hasBatch ? shape.front() : dfg::Dim(1));
    for (size_t i = 0; i < 2; ++i)
      merged.push_back(i < numWindows ? shape[hasBatch + i] : dfg::Dim(1));
    dfg::Dim rest = 1;
    for (dfg::Dim size : shape.drop_front(hasBatch + numWindows))
      rest = rest * size;
    merged.push_back(rest);
    return merged;
  }

  dfg::GraphBuilder &g;
  Ints order, sizes, strides;
  dfg::Dims ordered;
  size_t numWindows = 0;
  bool hasBatch = false;
};

} // namespace

Converter::Result Converter::reduceWindow(Operation *op, Values operands, Builder &g) {
  std::optional<Combination> combination = op->getNumRegions() == 1 ? getCombination(op->getRegion(0)) : std::nullopt;
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  std::optional<WindowForm> form = WindowForm::get(op, shape->size());
  if (operands.size() != 2 || !combination || *combination == Combination::Assign || !form)
    return fail(g, "reduces windows by a function that is not a sum, product, maximum or minimum");
  Value x = operands[0];
  const bool natural = isUnsigned(op->getOperand(0));
  if (auto axis = form->getCumulativeAxis(*shape); axis && isIdentity(op->getOperand(1), *combination))
    return one(g, cumulateAxis(g, *combination, x, *axis, /*isReversed=*/form->low[*axis] == 0, operands[1], natural));
  const bool isZero = isIdentity(op->getOperand(1), Combination::Add);
  Ints interior = llvm::map_to_vector(form->inputDilations, [](int64_t dilation) { return dilation - 1; });
  x = padAll(g, x, form->low, form->high, interior, isZero ? Value() : operands[1]);
  if (!x || failed(shape = g.getShape(x)))
    return failure();
  for (size_t axis = 0; axis < shape->size(); ++axis)
    if (!form->isTrivial(axis) && !(*shape)[axis].isConstant())
      return fail(g, "has windows along the batch");
  const bool isFloat = llvm::isa<FloatType>(Builder::elementOf(x)),
             isWhole = isIdentity(op->getOperand(1), *combination);
  if (form->isPool() && isFloat && isWhole && (*combination == Combination::Max || *combination == Combination::Add)) {
    Images images(g, *form, *shape);
    Value x4 = images.from(x);
    if (*combination == Combination::Max)
      return one(g, images.back(g.make<dfg::MaxPoolOp>(x4, images.getAttributes())));
    Value mean = g.make<dfg::AvgPoolOp>(x4, images.getAttributes());
    return one(g, images.back(g.mul(mean, g.scalar(Builder::elementOf(x), form->getTaps()))));
  }
  // Windows of sums, each a tap an axis after the other.
  int64_t taps = 0;
  for (int64_t size : form->sizes)
    taps += size;
  if (taps > kMaxTaps)
    return fail(g, "reduces windows of " + Twine(form->getTaps()) + " elements");
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (form->sizes[axis] == 1 && form->strides[axis] == 1)
      continue;
    Dim size = (*shape)[axis];
    int64_t span = (form->sizes[axis] - 1) * form->windowDilations[axis] + 1;
    int64_t out = (size.getConstant() - span) / form->strides[axis] + 1;
    if (size.getConstant() < span)
      return fail(g, "has windows that are larger than its operand");
    Value reduced;
    for (int64_t tap = 0; tap < form->sizes[axis]; ++tap) {
      Value part = g.slice(x, axis, tap * form->windowDilations[axis], out, form->strides[axis]);
      reduced = reduced ? combine(g, *combination, reduced, part, natural) : part;
    }
    x = reduced;
  }
  if (!isWhole)
    x = combine(g, *combination, x, operands[1], natural);
  return one(g, x);
}

/// Each element with all before it along the axis, or all behind it.
Value Converter::cumulateAxis(Builder &g, Combination combination, Value x, int64_t axis, bool isReversed,
                              Value identity, bool isUnsigned) {
  Type element = Builder::elementOf(x);
  const bool hasScan = llvm::isa<FloatType>(element) || element.isInteger(32) || element.isInteger(64);
  if (combination == Combination::Add && hasScan)
    return g.make<dfg::CumsumOp>({x, g.integer(axis)}, g.flag("reverse", isReversed));
  if (combination == Combination::Mul && hasScan)
    return g.make<dfg::CumprodOp>({x, g.integer(axis)}, g.flag("reverse", isReversed));
  FailureOr<Dims> shape = g.getShape(x);
  if (failed(shape))
    return {};
  // Spans of twice the length in each step, as lowering makes them of a scan.
  const int64_t size = (*shape)[axis].getConstant();
  for (int64_t span = 1; span < size && x; span *= 2) {
    Value others = g.slice(x, axis, isReversed ? span : 0, size - span, 1);
    others = g.padAxis(others, axis, isReversed ? 0 : span, isReversed ? span : 0, identity);
    x = others ? combine(g, combination, x, others, isUnsigned) : Value();
  }
  return x;
}

/// Windows whose sizes follow from the batch: all elements up to (or from) each, which is how JAX writes jnp.cumsum
/// along it.
Converter::Result Converter::cumulate(Operation *op, Values operands, Builder &g) {
  auto called = op->getAttrOfType<ArrayAttr>("called_computations");
  auto name = called && called.size() == 1 ? llvm::dyn_cast<FlatSymbolRefAttr>(called[0]) : FlatSymbolRefAttr();
  Operation *function = name ? symbols.lookup(name.getValue()) : nullptr;
  if (operands.size() != 7 || !function || function->getNumRegions() != 1)
    return fail(g, "does not say what it does with windows");
  std::optional<Combination> combination = getCombination(function->getRegion(0));
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  const size_t rank = shape->size();
  // Sizes, strides, dilations of the operand and of windows, paddings before and behind each axis.
  SmallVector<Dims> form;
  for (Value each : ArrayRef(operands).drop_front(2)) {
    FailureOr<Dims> sizes = getSizes(each, g);
    if (failed(sizes))
      return failure();
    if (sizes->size() != (form.size() == 4 ? 2 * rank : rank))
      return fail(g, "has windows of another rank than its operand");
    form.push_back(*sizes);
  }
  std::optional<size_t> axis;
  bool isReversed = false, isCumulative = isIdentity(op->getOperand(1), combination.value_or(Combination::Assign));
  for (size_t each = 0; each < rank; ++each) {
    const Dim extent = (*shape)[each], size = form[0][each], low = form[4][2 * each], high = form[4][2 * each + 1];
    isCumulative &= form[1][each] == Dim(1) && form[2][each] == Dim(1) && form[3][each] == Dim(1);
    if (size == Dim(1) && low == Dim(0) && high == Dim(0))
      continue;
    isReversed = low == Dim(0);
    isCumulative &=
        !axis && size == extent && (isReversed ? high : low) == extent - Dim(1) && (isReversed || high == Dim(0));
    axis = each;
  }
  const bool isSum = combination == Combination::Add;
  if (!isCumulative || !axis || !(isSum || combination == Combination::Mul))
    return fail(g, "has windows along the batch, which there is code for where they are a cumulative sum or product "
                   "of the whole axis");
  Values taken{operands[0], g.integer(*axis)};
  return one(g, isSum ? g.make<dfg::CumsumOp>(taken, g.flag("reverse", isReversed))
                      : g.make<dfg::CumprodOp>(taken, g.flag("reverse", isReversed)));
}

/// Each window's gradient goes to the first of its elements that is the largest.
Value Converter::maxOfWindowsGradient(Builder &g, Value x, Value gradient, ArrayRef<int64_t> sizes,
                                      ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations) {
  FailureOr<Dims> shape = g.getShape(x), out = g.getShape(gradient);
  if (failed(shape) || failed(out))
    return {};
  int64_t taps = 1;
  for (int64_t size : sizes)
    taps *= size;
  if (taps > kMaxTaps)
    return (void)g.fail("is the gradient of a maximum over windows of " + Twine(taps) + " elements"), Value();
  // Element `tap` of all windows.
  auto forEachTap = [&](auto visit) {
    Ints tap(sizes.size(), 0);
    for (int64_t number = 0; number < taps; ++number) {
      int64_t rest = number;
      for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
        tap[axis] = rest % sizes[axis] * dilations[axis];
      Value part = x;
      for (size_t axis = 0; axis < sizes.size(); ++axis)
        if (sizes[axis] != 1 || strides[axis] != 1)
          part = g.slice(part, axis, tap[axis], (*out)[axis].getConstant(), strides[axis]);
      visit(tap, part);
    }
  };
  Value largest;
  forEachTap([&](ArrayRef<int64_t>, Value part) { largest = largest ? g.maximum(largest, part) : part; });
  Value isTaken, sum, zero = g.scalar(Builder::elementOf(x), 0);
  forEachTap([&](ArrayRef<int64_t> tap, Value part) {
    Value is = g.equal(part, largest);
    Value chosen = isTaken ? g.both(is, g.negate(isTaken)) : is;
    isTaken = isTaken ? g.either(isTaken, is) : is;
    Value each = g.select(chosen, gradient, zero);
    // To where they were taken from.
    Ints high(sizes.size(), 0), interior(sizes.size(), 0);
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 1 && strides[axis] == 1)
        continue;
      interior[axis] = strides[axis] - 1;
      high[axis] = (*shape)[axis].getConstant() - tap[axis] - ((*out)[axis].getConstant() - 1) * strides[axis] - 1;
    }
    each = padAll(g, each, tap, high, interior, Value());
    sum = sum ? g.add(sum, each) : each;
  });
  return sum;
}

Converter::Result Converter::selectAndScatter(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  std::optional<WindowForm> form = WindowForm::get(op, shape->size());
  std::optional<Combination> scatters = op->getNumRegions() == 2 ? getCombination(op->getRegion(1)) : std::nullopt;
  auto compares = [&](Region &region, StringRef direction) {
    Block &block = region.front();
    Operation *compare = &block.front();
    return region.hasOneBlock() && block.getNumArguments() == 2 &&
           compare->getName().getStringRef() == "stablehlo.compare" &&
           getKeyword(compare, "comparison_direction") == direction && compare->getOperands() == block.getArguments() &&
           compare->getNextNode() == &block.back() && block.back().getOperands() == compare->getResults();
  };
  // A minimum is at the maximum of the negated numbers.
  const bool isLeast = op->getNumRegions() == 2 && compares(op->getRegion(0), "LE");
  if (!form || operands.size() != 3 || scatters != Combination::Add || !(isLeast || compares(op->getRegion(0), "GE")) ||
      !isIdentity(op->getOperand(2), Combination::Add))
    return fail(g, "is not the gradient of a maximum or a minimum over windows");
  Type element = Builder::elementOf(operands[0]);
  if (!llvm::isa<FloatType>(element) || !WindowForm::areOnes(form->inputDilations))
    return fail(g, "is the gradient of a maximum over windows of integers, or of dilated operands");
  Ints none(shape->size(), 0);
  Value padded =
      padAll(g, isLeast ? g.neg(operands[0]) : operands[0], form->low, form->high, none, g.scalar(element, -INFINITY));
  if (!padded || failed(shape = g.getShape(padded)))
    return failure();
  for (size_t axis = 0; axis < shape->size(); ++axis)
    if (!form->isTrivial(axis) && !(*shape)[axis].isConstant())
      return fail(g, "has windows along the batch");
  Value gradient;
  if (form->isPool()) {
    Images images(g, *form, *shape), outputs(g, *form, *shape);
    SmallVector<NamedAttribute> attributes = images.getAttributes();
    Value x4 = images.from(padded);
    Value pooled = g.make<dfg::MaxPoolOp>(x4, attributes);
    gradient = images.back(g.make<dfg::MaxPoolGradOp>({x4, pooled, outputs.from(operands[1])}, attributes));
  } else {
    gradient = maxOfWindowsGradient(g, padded, operands[1], form->sizes, form->strides, form->windowDilations);
  }
  Ints low = llvm::map_to_vector(form->low, [](int64_t entry) { return -entry; }),
       high = llvm::map_to_vector(form->high, [](int64_t entry) { return -entry; });
  return one(g, padAll(g, gradient, low, high, none, Value()));
}

} // namespace distc::stablehlo

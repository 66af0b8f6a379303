//===- Reductions.cpp - Reductions over axes and windows, largest elements ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include "llvm/ADT/StringSwitch.h"
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

/// Runs a region of comparisons, choices and logic on numbers: a reduction that only compares is what it is for each
/// order of its operands.
class ScalarRegion {
public:
  static std::optional<SmallVector<double>> run(Region &region, ArrayRef<double> arguments) {
    if (!region.hasOneBlock() || region.getNumArguments() != arguments.size())
      return std::nullopt;
    ScalarRegion state;
    Block &block = region.front();
    for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
      state.values[argument] = value;
    if (block.empty())
      return std::nullopt;
    for (Operation &op : llvm::make_range(block.begin(), std::prev(block.end()))) {
      std::optional<double> value = state.evaluate(op);
      if (!value || op.getNumResults() != 1)
        return std::nullopt;
      state.values[op.getResult(0)] = *value;
    }
    SmallVector<double> results;
    for (Value result : block.back().getOperands()) {
      auto it = state.values.find(result);
      if (it == state.values.end())
        return std::nullopt;
      results.push_back(it->second);
    }
    return results;
  }

private:
  std::optional<double> evaluate(Operation &op) {
    SmallVector<double> x;
    for (Value operand : op.getOperands()) {
      auto it = values.find(operand);
      if (it == values.end())
        return std::nullopt;
      x.push_back(it->second);
    }
    StringRef kind = op.getName().getStringRef();
    if (kind == "stablehlo.and" && x.size() == 2)
      return x[0] != 0 && x[1] != 0;
    if (kind == "stablehlo.or" && x.size() == 2)
      return x[0] != 0 || x[1] != 0;
    if (kind == "stablehlo.not" && x.size() == 1 && getElementTypeOrSelf(op.getOperand(0).getType()).isInteger(1))
      return x[0] == 0;
    if (kind == "stablehlo.select" && x.size() == 3)
      return x[0] != 0 ? x[1] : x[2];
    if (kind != "stablehlo.compare" || x.size() != 2 || getKeyword(&op, "compare_type") == "TOTALORDER")
      return std::nullopt;
    return llvm::StringSwitch<std::optional<double>>(getKeyword(&op, "comparison_direction"))
        .Case("EQ", x[0] == x[1])
        .Case("NE", x[0] != x[1])
        .Case("LT", x[0] < x[1])
        .Case("LE", x[0] <= x[1])
        .Case("GT", x[0] > x[1])
        .Case("GE", x[0] >= x[1])
        .Default(std::nullopt);
  }

  llvm::DenseMap<Value, double> values;
};

/// Whether the region keeps the larger (the smaller) of two elements and its position, a NaN before all numbers, and of
/// equal ones the first: JAX's argmax.
bool isArgExtremum(Region &region, bool isMax) {
  const double numbers[] = {-1.0, 0.0, 1.0, -INFINITY, INFINITY, NAN};
  for (double x : numbers)
    for (double y : numbers)
      for (auto [i, j] : {std::pair(0.0, 1.0), std::pair(1.0, 0.0)}) {
        auto results = ScalarRegion::run(region, {x, i, y, j});
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

/// Whether the value counts along `axis`.
bool isPosition(Value value, int64_t axis) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  StringRef kind = op->getName().getStringRef();
  if (kind == "stablehlo.iota" || kind == "stablehlo.dynamic_iota")
    return getInt(op, "iota_dimension", -1) == axis;
  if (kind != "stablehlo.broadcast_in_dim" && kind != "stablehlo.dynamic_broadcast_in_dim")
    return false;
  Ints axes = getInts(op, "broadcast_dimensions");
  auto it = llvm::find(axes, axis);
  return it != axes.end() && isPosition(op->getOperand(0), it - axes.begin());
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
      !isIdentity(op->getOperand(3), Combination::Add) || isUnsigned(op->getOperand(0)))
    return fail(g, "reduces several operands together, which there is code for where they are an argmax or argmin");
  Type position = elementOfResult(op, 1);
  auto positionOf = [&](Value x, bool largest) {
    Value axis = g.integer(axes[0]);
    return largest ? g.make<dfg::ArgMaxOp>({x, axis}, {}, position) : g.make<dfg::ArgMinOp>({x, axis}, {}, position);
  };
  Value value = reduceAxes(g, isMax ? Combination::Max : Combination::Min, operands[0], axes, false);
  Value at = positionOf(operands[0], isMax);
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
  bool isTrivial(size_t axis) const {
    return sizes[axis] == 1 && strides[axis] == 1 && inputDilations[axis] == 1 && low[axis] == 0 && high[axis] == 0;
  }
  /// Images [n, h, w, c] whose windows are of height and width.
  bool isPool() const {
    return sizes.size() == 4 && isTrivial(0) && isTrivial(3) && areOnes(inputDilations) && areOnes(windowDilations) &&
           llvm::all_of(low, [](int64_t entry) { return entry >= 0; }) &&
           llvm::all_of(high, [](int64_t entry) { return entry >= 0; });
  }
  SmallVector<NamedAttribute> getPoolAttributes(dfg::GraphBuilder &g) const {
    return {g.attribute("ksize", g.builder.getI64ArrayAttr(sizes)),
            g.attribute("strides", g.builder.getI64ArrayAttr(strides)),
            g.attribute("padding", g.builder.getStringAttr("VALID"))};
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
  const bool isZero = isIdentity(op->getOperand(1), Combination::Add);
  Ints interior = llvm::map_to_vector(form->inputDilations, [](int64_t dilation) { return dilation - 1; });
  x = padAll(g, x, form->low, form->high, interior, isZero ? Value() : operands[1]);
  if (!x || failed(shape = g.getShape(x)))
    return failure();
  const bool isFloat = llvm::isa<FloatType>(Builder::elementOf(x)),
             isWhole = isIdentity(op->getOperand(1), *combination);
  if (form->isPool() && isFloat && isWhole && *combination == Combination::Max)
    return one(g, g.make<dfg::MaxPoolOp>(x, form->getPoolAttributes(g)));
  if (form->isPool() && isFloat && isWhole && *combination == Combination::Add) {
    Value mean = g.make<dfg::AvgPoolOp>(x, form->getPoolAttributes(g));
    return one(g, g.mul(mean, g.scalar(Builder::elementOf(x), form->getTaps())));
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
    if (!size.isConstant())
      return fail(g, "has windows along the batch");
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

Converter::Result Converter::selectAndScatter(Operation *op, Values operands, Builder &g) {
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  std::optional<WindowForm> form = WindowForm::get(op, shape->size());
  std::optional<Combination> scatters = op->getNumRegions() == 2 ? getCombination(op->getRegion(1)) : std::nullopt;
  auto isGreaterEqual = [&](Region &region) {
    Block &block = region.front();
    Operation *compare = &block.front();
    return region.hasOneBlock() && block.getNumArguments() == 2 &&
           compare->getName().getStringRef() == "stablehlo.compare" &&
           getKeyword(compare, "comparison_direction") == "GE" && compare->getOperands() == block.getArguments() &&
           compare->getNextNode() == &block.back() && block.back().getOperands() == compare->getResults();
  };
  if (!form || operands.size() != 3 || scatters != Combination::Add || !isGreaterEqual(op->getRegion(0)) ||
      !isIdentity(op->getOperand(2), Combination::Add))
    return fail(g, "is not the gradient of a maximum over windows");
  if (!form->isPool() || !llvm::isa<FloatType>(Builder::elementOf(operands[0])))
    return fail(g, "is the gradient of a maximum over windows that are not of height and width of images [n, h, w, c]");
  Value lowest = g.scalar(Builder::elementOf(operands[0]), -INFINITY);
  Ints none(shape->size(), 0);
  Value padded = padAll(g, operands[0], form->low, form->high, none, lowest);
  SmallVector<NamedAttribute> attributes = form->getPoolAttributes(g);
  Value pooled = g.make<dfg::MaxPoolOp>(padded, attributes);
  Value gradient = g.make<dfg::MaxPoolGradOp>({padded, pooled, operands[1]}, attributes);
  Ints low = llvm::map_to_vector(form->low, [](int64_t entry) { return -entry; }),
       high = llvm::map_to_vector(form->high, [](int64_t entry) { return -entry; });
  return one(g, padAll(g, gradient, low, high, none, Value()));
}

// ---- In order
// --------------------------------------------------------------------------------------------------------

Converter::Result Converter::topK(Operation *op, Values operands, Builder &g) {
  int64_t k = getInt(op, "k", -1);
  for (StringRef name : {"mhlo.attributes", "composite_attributes"}) {
    auto attributes = op->getAttrOfType<DictionaryAttr>(name);
    if (!attributes)
      continue;
    if (auto number = attributes.getAs<IntegerAttr>("k"))
      k = number.getInt();
    if (auto largest = attributes.getAs<BoolAttr>("largest"); largest && !largest.getValue())
      return fail(g, "takes the smallest elements");
  }
  if (k < 0 || op->getNumResults() != 2)
    return fail(g, "does not say how many elements it takes");
  Values results = g.makeAll<dfg::TopKV2Op>(
      {operands[0], g.integer(k)}, {Builder::elementOf(operands[0]), elementOfResult(op, 1)}, g.flag("sorted", true));
  return results;
}

} // namespace distc::stablehlo

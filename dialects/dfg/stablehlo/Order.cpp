//===- Order.cpp - Largest elements, and elements in order --------------------------------===//
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

/// Axes in their order, but `axis` behind all others.
static Ints getOrderWithLast(int64_t rank, int64_t axis) {
  Ints order = llvm::to_vector(llvm::seq(rank));
  order.erase(order.begin() + axis);
  order.push_back(axis);
  return order;
}

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
  Value x = operands[0];
  Type element = Builder::elementOf(x);
  const bool natural = isUnsigned(op->getOperand(0));
  if (natural)
    x = orderKey(g, x, natural, /*joinsZeros=*/false);
  Values results = g.makeAll<dfg::TopKV2Op>({x, g.integer(k)}, {Builder::elementOf(x), elementOfResult(op, 1)},
                                            g.flag("sorted", true));
  if (natural && results.size() == 2)
    results[0] = element.getIntOrFloatBitWidth() < 32 ? g.cast(results[0], element) : flipSign(g, results[0]);
  return results;
}

Converter::Result Converter::approximateTopK(Operation *op, Values operands, Builder &g) {
  // All of them, which is more than was asked for.
  auto attributes = op->getAttrOfType<DictionaryAttr>("mhlo.backend_config");
  auto called = op->getAttrOfType<ArrayAttr>("called_computations");
  auto comparator = called && called.size() == 1 ? llvm::dyn_cast<FlatSymbolRefAttr>(called[0]) : FlatSymbolRefAttr();
  auto k = attributes ? attributes.getAs<IntegerAttr>("top_k") : IntegerAttr();
  auto axis = attributes ? attributes.getAs<IntegerAttr>("reduction_dim") : IntegerAttr();
  Operation *function = comparator ? symbols.lookup(comparator.getValue()) : nullptr;
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (!k || !axis || !function || failed(shape) || op->getNumResults() != 2)
    return fail(g, "does not say how many elements it takes, of which axis");
  auto result = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  const int64_t rank = shape->size(), along = axis.getInt();
  if (along < 0 || along >= rank || !result || result.getDimSize(along) != k.getInt())
    return fail(g, "gives other elements than the largest: say aggregate_to_topk=True");
  auto greater = runScalarRegion(function->getRegion(0), {1, 0, 0, 0});
  if (!greater || greater->size() != 1)
    return fail(g, "orders by a comparator that is no order of its operand");
  const Ints last = getOrderWithLast(rank, along), back = invertPermutationVector(last);
  const bool takesLargest = (*greater)[0] != 0;
  if (isUnsigned(op->getOperand(0)))
    return fail(g, "takes the largest of unsigned integers by approx_max_k; take lax.top_k");
  Value x = g.transpose(operands[0], last);
  Values found = g.makeAll<dfg::TopKV2Op>({takesLargest ? x : g.neg(x), g.integer(k.getInt())},
                                          {Builder::elementOf(x), elementOfResult(op, 1)}, g.flag("sorted", true));
  if (found.size() != 2)
    return failure();
  return Values{g.transpose(takesLargest ? found[0] : g.neg(found[0]), back), g.transpose(found[1], back)};
}

// ---- Sorting -------------------------------------------------------------------------------------------------------

namespace {

/// An operand that a comparator looks at.
struct Key {
  size_t operand;
  bool isDescending;
};

/// A comparator that is a lexicographic order of operands.
struct LexicographicOrder {
  SmallVector<Key> keys; // the first decides first
  /// Whether -0 and 0 are alike, and all NaNs.
  bool joinsZeros = true;

  static std::optional<LexicographicOrder> get(Region &region, size_t count) {
    LexicographicOrder order;
    SmallVector<double> x(2 * count, 0.0);
    auto less = [&](ArrayRef<double> arguments) -> std::optional<bool> {
      auto results = runScalarRegion(region, arguments);
      return results && results->size() == 1 ? std::optional((*results)[0] != 0) : std::nullopt;
    };
    for (size_t i = 0; i < count; ++i) {
      SmallVector<double> up(x), down(x);
      up[2 * i + 1] = down[2 * i] = 1;
      std::optional<bool> isUp = less(up), isDown = less(down);
      if (!isUp || !isDown || (*isUp && *isDown))
        return std::nullopt;
      if (*isUp || *isDown)
        order.keys.push_back({i, *isDown});
    }
    if (order.keys.empty())
      return std::nullopt;
    // Which of two keys decides.
    llvm::stable_sort(order.keys, [&](const Key &a, const Key &b) {
      SmallVector<double> each(x);
      each[2 * a.operand + (a.isDescending ? 0 : 1)] = 1;
      each[2 * b.operand + (b.isDescending ? 1 : 0)] = 1;
      return less(each).value_or(false);
    });
    SmallVector<double> zeros(x);
    zeros[2 * order.keys[0].operand + (order.keys[0].isDescending ? 1 : 0)] = -0.0;
    order.joinsZeros = !less(zeros).value_or(false);
    return order.isWhatRegionDoes(less, x) ? std::optional(order) : std::nullopt;
  }

private:
  /// For all values of the first two keys.
  template <typename Less> bool isWhatRegionDoes(Less less, ArrayRef<double> equal) const {
    const double numbers[] = {-1.0, 0.0, 1.0, INFINITY, -INFINITY};
    auto compare = [](const Key &key, double x, double y) { return x == y ? 0 : (x < y) != key.isDescending ? -1 : 1; };
    for (double a : numbers)
      for (double b : numbers)
        for (double c : numbers)
          for (double d : numbers) {
            SmallVector<double> each(equal);
            each[2 * keys[0].operand] = a;
            each[2 * keys[0].operand + 1] = b;
            int sign = compare(keys[0], a, b);
            if (keys.size() > 1) {
              each[2 * keys[1].operand] = c;
              each[2 * keys[1].operand + 1] = d;
              sign = sign ? sign : compare(keys[1], c, d);
            }
            if (less(each) != (sign < 0))
              return false;
          }
    return true;
  }
};

} // namespace

Converter::Result Converter::sort(Operation *op, Values operands, Builder &g) {
  if (operands.empty() || op->getNumRegions() != 1)
    return fail(g, "has no comparator");
  std::optional<LexicographicOrder> order = LexicographicOrder::get(op->getRegion(0), operands.size());
  if (!order)
    return fail(g, "orders by a comparator that is no lexicographic order of its operands");
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  const int64_t rank = shape->size(), axis = getInt(op, "dimension", -1);
  if (axis < 0 || axis >= rank)
    return fail(g, "has no dimension that it sorts along");
  // How many there are is the batch's size where the examples are sorted.
  const Dim extent = (*shape)[axis];
  Value size =
      extent.isConstant() ? g.integer(extent.getConstant()) : g.sizeOf(operands[0], axis, g.builder.getI32Type());
  const Ints last = getOrderWithLast(rank, axis), back = invertPermutationVector(last);
  auto take = [&](Value x, Value places) { return g.gather(x, places, rank - 1, rank - 1); };
  // Stable, so that keys are sorted by from the last to the first.
  Value places;
  for (const Key &key : llvm::reverse(order->keys)) {
    Value x = g.transpose(operands[key.operand], last);
    Value number = orderKey(g, x, isUnsigned(op->getOperand(key.operand)), order->joinsZeros);
    if (!key.isDescending)
      number = g.make<dfg::InvertOp>(number);
    if (places)
      number = take(number, places);
    if (!number)
      return failure();
    Values largest = g.makeAll<dfg::TopKV2Op>({number, size}, {Builder::elementOf(number), g.builder.getI32Type()},
                                              g.flag("sorted", true));
    if (largest.size() != 2)
      return failure();
    places = places ? take(places, largest[1]) : largest[1];
  }
  Values results;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    Value sorted = isPosition(op->getOperand(number), axis) ? g.cast(places, Builder::elementOf(operand))
                                                            : take(g.transpose(operand, last), places);
    results.push_back(g.transpose(sorted, back));
  }
  if (g.failed())
    return failure();
  return results;
}

} // namespace distc::stablehlo

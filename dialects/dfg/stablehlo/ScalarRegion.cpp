//===- ScalarRegion.cpp - What a region does with numbers ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/ScalarRegion.h"
#include "dialects/dfg/stablehlo/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;

namespace distc::stablehlo {
namespace {

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
  /// Numbers in the order of floats with signs of zeros and NaNs.
  static double getTotalOrder(double value) {
    double rank = std::isnan(value)   ? 4
                  : std::isinf(value) ? 3
                  : value == 0        ? 0.5
                                      : 1 + std::abs(value) / (1 + std::abs(value));
    return std::signbit(value) ? -rank : rank;
  }

  static std::optional<double> getConstant(Operation *op) {
    auto value = op && op->getName().getStringRef() == "stablehlo.constant"
                     ? op->getAttrOfType<SplatElementsAttr>("value")
                     : SplatElementsAttr();
    if (!value)
      return std::nullopt;
    if (llvm::isa<FloatType>(value.getElementType()))
      return value.getSplatValue<APFloat>().convertToDouble();
    return static_cast<double>(value.getSplatValue<APInt>().getSExtValue());
  }

  std::optional<double> evaluate(Operation &op) {
    SmallVector<double> x;
    for (Value operand : op.getOperands()) {
      auto it = values.find(operand);
      // Constants may be outside.
      std::optional<double> value = it == values.end() ? getConstant(operand.getDefiningOp()) : it->second;
      if (!value)
        return std::nullopt;
      x.push_back(*value);
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
    if (kind == "stablehlo.constant")
      return getConstant(&op);
    if (kind != "stablehlo.compare" || x.size() != 2)
      return std::nullopt;
    if (getKeyword(&op, "compare_type") == "TOTALORDER")
      for (double &each : x)
        each = getTotalOrder(each);
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

} // namespace

std::optional<SmallVector<double>> runScalarRegion(Region &region, ArrayRef<double> arguments) {
  return ScalarRegion::run(region, arguments);
}

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

} // namespace distc::stablehlo

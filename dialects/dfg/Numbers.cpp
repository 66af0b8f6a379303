//===- Numbers.cpp - Numbers that are known when compiling ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Numbers.h"
#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::dfg {

int64_t findFixedBatch(GraphOp graph) {
  std::optional<int64_t> size;
  for (auto feed : graph.getOps<PlaceholderOp>()) {
    auto type = llvm::dyn_cast<RankedTensorType>(feed.getResult().getType());
    if (!type || (type.getRank() > 0 && type.isDynamicDim(0)))
      return 0;
    if (type.getRank() == 0)
      continue;
    if (size && type.getDimSize(0) != *size)
      return 0;
    size = type.getDimSize(0);
  }
  return size.value_or(0);
}

std::optional<double> evaluateNumber(Value value, const ShapeContext &context, int depth) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !type || !type.hasStaticShape() || type.getNumElements() != 1)
    return std::nullopt;
  const bool isSingle = type.getElementType().isF32();
  auto round = [&](double x) { return isSingle ? static_cast<double>(static_cast<float>(x)) : x; };
  auto elements = context.getElements(value);
  if (elements && elements->size() == 1 && elements->front().isConstant() && !elements->front().isBound())
    return round(static_cast<double>(elements->front().getConstant()));
  if ((!isSingle && !type.getElementType().isF64()) || op->getNumResults() != 1)
    return std::nullopt;
  if (auto constant = llvm::dyn_cast<ConstOp>(op)) {
    auto known = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!known)
      return std::nullopt;
    return (*known.value_begin<APFloat>()).convertToDouble();
  }
  SmallVector<double, 2> x;
  const bool isMoved = op->hasTrait<Reshapes>();
  for (Value operand : isMoved ? op->getOperands().take_front(1) : op->getOperands()) {
    std::optional<double> next = evaluateNumber(operand, context, depth - 1);
    if (!next)
      return std::nullopt;
    x.push_back(*next);
  }
  if ((op->hasTrait<Forwards>() || isMoved) && !x.empty())
    return x[0];
  // One operation in float64 on what float32 holds, rounded, is the operation in float32.
  return llvm::TypeSwitch<Operation *, std::optional<double>>(op)
      .Case<CastOp>([&](auto) { return round(x[0]); })
      .Case<AddOp, AddV2Op>([&](auto) { return round(x[0] + x[1]); })
      .Case<SubOp>([&](auto) { return round(x[0] - x[1]); })
      .Case<MulOp>([&](auto) { return round(x[0] * x[1]); })
      .Case<RealDivOp, DivOp, DivNoNanOp>(
          [&](auto) { return x[1] == 0 ? std::nullopt : std::optional(round(x[0] / x[1])); })
      .Case<ReciprocalOp, InvOp>([&](auto) { return x[0] == 0 ? std::nullopt : std::optional(round(1 / x[0])); })
      .Case<NegOp>([&](auto) { return -x[0]; })
      .Case<SquareOp>([&](auto) { return round(x[0] * x[0]); })
      .Case<SqrtOp>([&](auto) { return x[0] < 0 ? std::nullopt : std::optional(round(std::sqrt(x[0]))); })
      .Case<MaximumOp>([&](auto) { return std::max(x[0], x[1]); })
      .Case<MinimumOp>([&](auto) { return std::min(x[0], x[1]); })
      .Case<FloorOp>([&](auto) { return std::floor(x[0]); })
      .Case<CeilOp>([&](auto) { return std::ceil(x[0]); })
      .Case<RoundOp, RintOp>([&](auto) { return std::nearbyint(x[0]); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace distc::dfg

//===- OperandRoles.cpp - What an operation makes of its operands, for the batch's flow ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/OperandRoles.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchAxis.h"

using namespace mlir;

namespace distc {

bool isFloatOrUnknown(Value value) {
  return llvm::isa<FloatType, dfg::UnknownType>(getElementTypeOrSelf(value.getType()));
}

static bool haveSameType(Value x, Value y) {
  Type typeX = getElementTypeOrSelf(x.getType()), typeY = getElementTypeOrSelf(y.getType());
  return typeX == typeY || ((llvm::isa<dfg::UnknownType>(typeX) || llvm::isa<dfg::UnknownType>(typeY)) &&
                            isFloatOrUnknown(x) && isFloatOrUnknown(y));
}

dfg::Linearity getLinearity(Operation *op) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  if (!node)
    return dfg::Linearity::None;
  // Quotients of integers are rounded.
  if (op->getNumResults() > 0 && !isFloatOrUnknown(op->getResult(0)) &&
      (llvm::isa<dfg::MeanOp>(op) || op->hasTrait<dfg::Divides>()))
    return dfg::Linearity::None;
  // A cast to integers rounds; one to booleans compares with zero.
  if (llvm::isa<dfg::CastOp>(op) && ((isFloatOrUnknown(op->getOperand(0)) && !isFloatOrUnknown(op->getResult(0))) ||
                                     getElementTypeOrSelf(op->getResult(0)).isInteger(1)))
    return dfg::Linearity::None;
  return node.getLinearity();
}

SmallVector<Value> getData(Operation *op) {
  if (llvm::isa<dfg::CastOp>(op))
    return llvm::to_vector(op->getOperands());
  SmallVector<Value> data;
  if (op->getNumResults() == 0)
    return data;
  for (Value operand : op->getOperands())
    if (haveSameType(operand, op->getResult(0)))
      data.push_back(operand);
  // Of integers the others may be shapes and axes.
  if (!isFloatOrUnknown(op->getResult(0)) && !llvm::isa<dfg::ScalarInterface>(op) && data.size() > 1)
    data.resize(1);
  return data;
}

bool sumsOverBatch(Operation *op) {
  return op->hasTrait<dfg::SumsRows>() ||
         (getLinearity(op) == dfg::Linearity::Each && !llvm::isa<dfg::ScalarInterface>(op));
}

bool isZeroConstant(Operation *op) {
  return llvm::isa<dfg::ZerosLikeOp>(op) || matchPattern(op, m_AnyZeroFloat()) || matchPattern(op, m_Zero());
}

std::optional<int> addScales(std::optional<int> x, std::optional<int> y) {
  return x && y ? std::optional<int>(*x + *y) : std::nullopt;
}

/// Whether integers are numbers of truth values: of 32 bits and more no sum of them wraps around.
static bool countsTruthValues(Value value, int depth = 16) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (llvm::isa<dfg::CastOp>(op)) {
    auto from = llvm::dyn_cast<IntegerType>(getElementTypeOrSelf(op->getOperand(0)));
    return from && (from.getWidth() == 1 || countsTruthValues(op->getOperand(0), depth - 1));
  }
  if (llvm::isa<dfg::SumOp>(op) || op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>())
    return countsTruthValues(op->getOperand(0), depth - 1);
  return llvm::isa<dfg::MulOp, dfg::AddOp, dfg::AddV2Op>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return countsTruthValues(operand, depth - 1); });
}

bool leavesModulus(Operation *op) {
  if (!llvm::isa<dfg::CastOp>(op))
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  if (!from.isInteger() || from.isInteger(1) ||
      (to.isInteger() && to.getIntOrFloatBitWidth() <= from.getIntOrFloatBitWidth()))
    return false;
  return from.getIntOrFloatBitWidth() < 32 || !countsTruthValues(op->getOperand(0));
}

bool choosesElements(Operation *op) {
  return op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::TakesPart>() ||
         op->hasTrait<dfg::Joins>() || llvm::isa<dfg::CastOp>(op);
}

void sortOperands(Operation *op, SmallVectorImpl<Value> &linear, SmallVectorImpl<Value> &others) {
  SmallVector<Value> values;
  for (OpOperand &operand : op->getOpOperands())
    if (!isParameterOperand(op, operand.getOperandNumber()) && !dfg::isHandle(operand.get().getType()))
      values.push_back(operand.get());
  auto isLinear = [&](size_t i) {
    if (llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op))
      return i > 0;
    if (llvm::isa<dfg::ScatterNdOp>(op))
      return i == 1;
    if (op->hasTrait<dfg::AddsSlices>() || llvm::isa<dfg::TensorScatterUpdateOp>(op))
      return i != 1;
    switch (getLinearity(op)) {
    case dfg::Linearity::None:
      return false;
    case dfg::Linearity::Joint:
    case dfg::Linearity::Each:
      return true;
    case dfg::Linearity::First:
      return i == 0;
    case dfg::Linearity::Last:
      return i + 1 == values.size();
    }
    return false;
  };
  for (auto [i, value] : llvm::enumerate(values))
    (isLinear(i) ? linear : others).push_back(value);
}

std::optional<double> getDegree(Operation *op) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  return node ? node.getDegree() : std::nullopt;
}

} // namespace distc

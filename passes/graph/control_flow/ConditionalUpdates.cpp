//===- ConditionalUpdates.cpp - Optimizers' updates under a condition ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// In an exported graph nothing but control edges says what runs before what, so that
// no update is made that another assignment takes back. An optimizer's is what its
// rule says instead: expressions of the old values, chosen or not, that are assigned.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

bool StraightLine::isWrittenOut(Operation *op) {
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  if (!keepsOrder || !active || !update || !update.isOptimizerUpdate() || update.getIndicesOperand() >= 0 ||
      op->getNumResults() > 0)
    return false;
  return llvm::all_of(update.getWrittenOperands(), [&](unsigned operand) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(op->getOperand(operand));
    auto variable = handle ? symbols.lookup<dfg::VariableOp>(handle.getVariable()) : dfg::VariableOp();
    return variable && variable.getKind() != "ref" && llvm::isa<dfg::RefType>(op->getOperand(operand).getType());
  });
}

/// The node on tensors that computes what `op` does of elements; null where there is none.
Value StraightLine::makeTensor(Operation &op, llvm::function_ref<Value(unsigned)> operand, StringRef name) {
  Type element = op.getResult(0).getType();
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case([&](arith::ConstantOp constant) -> Value {
        auto type = RankedTensorType::get({}, element);
        auto elements = DenseElementsAttr::get(type, constant.getValue());
        auto node = dfg::ConstOp::create(builder, locate(name), type, elements);
        return failed(infer(node)) ? Value() : node.getResult();
      })
      .Case([&](arith::AddFOp) { return make<dfg::AddV2Op>(name, element, operand(0), operand(1)); })
      .Case([&](arith::SubFOp) { return make<dfg::SubOp>(name, element, operand(0), operand(1)); })
      .Case([&](arith::MulFOp) { return make<dfg::MulOp>(name, element, operand(0), operand(1)); })
      .Case([&](arith::DivFOp) { return make<dfg::RealDivOp>(name, element, operand(0), operand(1)); })
      .Case([&](math::SqrtOp) { return make<dfg::SqrtOp>(name, element, operand(0)); })
      .Default(Value());
}

LogicalResult StraightLine::writeOutUpdate(Operation *op, const Node &node) {
  auto update = llvm::cast<dfg::UpdateInterface>(op);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  SmallVector<unsigned> written = update.getWrittenOperands();
  for (unsigned operand : written)
    orderAccess(op, op->getOperand(operand), /*writes=*/true);
  llvm::SetVector<Attribute> before(dfg::getControl(op).begin(), dfg::getControl(op).end());
  // The rule on elements: each operand's, of handles the old ones.
  Region region;
  Block &rule = region.emplaceBlock();
  OpBuilder inside(builder.getContext());
  inside.setInsertionPointToStart(&rule);
  dfg::ScalarBuilder scalars(inside, op->getLoc());
  llvm::DenseMap<Value, Value> tensors;
  SmallVector<Value> elements;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (auto ref = llvm::dyn_cast<dfg::RefType>(value.getType())) {
      Location loc = locate(node.name + "/old_" + std::to_string(operand.getOperandNumber()));
      auto read = dfg::ReadVariableOp::create(builder, loc, ref.getValueType(), value, /*implicit=*/false);
      if (!before.empty())
        read->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
      if (failed(infer(read)))
        return failure();
      value = read.getValue();
    }
    elements.push_back(rule.addArgument(getElementTypeOrSelf(value.getType()), op->getLoc()));
    tensors[elements.back()] = value;
  }
  SmallVector<Value> updated = update.emitUpdate(scalars, elements);
  for (auto [number, scalar] : llvm::enumerate(rule)) {
    Value made = makeTensor(
        scalar, [&](unsigned index) { return tensors.lookup(scalar.getOperand(index)); },
        node.name + "/rule_" + std::to_string(number));
    if (!made)
      return fail(node) << "is an update under a condition that depends on data; what its rule computes has no form in "
                           "an exported graph";
    tensors[scalar.getResult(0)] = made;
  }
  forget(op);
  // The variable's comes last, in the update's name: who waits for it waits for all.
  SmallVector<std::pair<unsigned, Value>> chosen;
  for (auto [operand, value] : llvm::zip(written, updated)) {
    FailureOr<Datum> choice = select(active, tensors.lookup(value), tensors.lookup(elements[operand]), node);
    if (failed(choice))
      return failure();
    chosen.emplace_back(operand, choice->value);
  }
  for (auto [operand, value] : llvm::reverse(chosen)) {
    const bool isVariable = operand == written.front();
    Location loc = isVariable ? op->getLoc() : locate(node.name + "/assign_" + std::to_string(operand));
    auto assign = dfg::AssignOp::create(builder, loc, TypeRange(), op->getOperand(operand), value);
    if (!before.empty())
      assign->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
    if (failed(infer(assign)))
      return failure();
    if (!isVariable)
      before.insert(dfg::getNodeNameAttr(assign));
    accesses[dfg::getVariableHandle(op->getOperand(operand)).getVariable()] = {dfg::getNodeNameAttr(assign), {}};
  }
  op->erase();
  return success();
}

} // namespace distc

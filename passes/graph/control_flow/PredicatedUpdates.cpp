//===- PredicatedUpdates.cpp - Updates and reads of variables, in order and under conditions ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

FailureOr<Operation *> StraightLine::recognizeUpdate(const Node &node) {
  Operation *op = node.op;
  Value handle = !node.operands.empty() ? node.operands[0].value : Value();
  auto ref = handle ? llvm::dyn_cast<dfg::RefType>(handle.getType()) : dfg::RefType();
  if (!ref || !llvm::isa<dfg::OpaqueOp>(op) || isControlFlow(op))
    return static_cast<Operation *>(nullptr);
  std::optional<RegisteredOperationName> known;
  for (RegisteredOperationName name : op->getContext()->getRegisteredOperationsByDialect("dfg"))
    if (auto *interface = name.getInterface<dfg::NodeInterface>();
        interface && name.hasInterface<dfg::UpdateInterface>() &&
        llvm::is_contained(interface->getTensorFlowNames(), node.kind))
      known = name;
  if (!known)
    return static_cast<Operation *>(nullptr);
  OperationState state(op->getLoc(), *known);
  for (const Datum &operand : node.operands) {
    if (!operand.value)
      return fail(node) << "takes an element that was never written", failure();
    state.addOperands(operand.value);
  }
  state.addTypes(SmallVector<Type>(op->getNumResults(), ref.getValueType()));
  for (StringAttr attribute : known->getAttributeNames())
    if (Attribute value = node.getAttr<Attribute>(attribute.getValue()))
      state.addAttribute(attribute, value);
  if (!node.scope.inPlace)
    state.location = locate(node.name);
  else
    // Its name goes over.
    op->setLoc(builder.getUnknownLoc());
  Operation *update = builder.create(state);
  setControls(update, node);
  nodesByName[dfg::getNodeName(update)] = update;
  Node known_{update, node.kind, node.name, node.operands, node.controls, node.scope};
  effects.push_back(dfg::getNodeNameAttr(update));
  if (!node.scope.inPlace)
    node.scope.replacements[dfg::getNodeName(op)].assign({dfg::getNodeNameAttr(update)});
  if (failed(infer(update)) || (active && failed(predicateUpdate(update, known_))))
    return failure();
  Data results;
  for (Value result : update->getResults())
    results.push_back(chosenResults.contains(result) ? chosenResults.lookup(result) : result);
  for (auto [result, datum] : llvm::zip(op->getResults(), results))
    node.scope.data[result] = datum;
  if (node.scope.inPlace)
    replaced.emplace_back(op, results);
  return update;
}

void StraightLine::orderAccess(Operation *op, Value handle, bool writes) {
  dfg::VarHandleOp variable = keepsOrder && active ? dfg::getVariableHandle(handle) : dfg::VarHandleOp();
  StringAttr name = dfg::getNodeNameAttr(op);
  if (!variable || !name)
    return;
  Accesses &before = accesses[variable.getVariable()];
  llvm::SetVector<Attribute> controls(dfg::getControl(op).begin(), dfg::getControl(op).end());
  // A Switch waited for its predicate.
  for (auto &[predicate, value] : guarded)
    if (Operation *def = predicate.getDefiningOp(); def && ordered.contains(def))
      if (StringAttr waited = dfg::getNodeNameAttr(def))
        controls.insert(waited);
  if (before.write)
    controls.insert(before.write);
  if (writes)
    controls.insert(before.reads.begin(), before.reads.end());
  else
    before.reads.push_back(name);
  if (controls.empty())
    return;
  op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  ordered.insert(op);
}

void StraightLine::orderRead(Operation *op) {
  if (Value handle = getReadVariable(op))
    orderAccess(op, handle, /*writes=*/false);
}

LogicalResult StraightLine::predicateUpdate(Operation *op, const Node &node) {
  if (auto assertion = llvm::dyn_cast<dfg::AssertOp>(op)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    Value inactive = logicalNot(active, node.name + "/inactive"), holds;
    // A guard runs the assertion where it does not hold.
    if (inactive == assertion.getCondition())
      return success();
    if (inactive)
      holds = make<dfg::LogicalOrOp>(node.name + "/holds", builder.getI1Type(), assertion.getCondition(), inactive);
    if (!holds)
      return failure();
    assertion.getConditionMutable().assign(holds);
    return success();
  }
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  if (!update)
    return success();
  // Where nothing but control edges keeps others from it, nothing writes a variable to give it its old value again.
  if (keepsOrder) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(op->getOperand(update.getWrittenOperands().front()));
    auto variable = handle ? symbols.lookup<dfg::VariableOp>(handle.getVariable()) : dfg::VariableOp();
    if (!llvm::isa<dfg::AssignOp, dfg::AssignAddOp, dfg::AssignSubOp>(op) || !variable || variable.getKind() == "ref")
      return fail(node) << "is an update under a condition that depends on data; of those only assignments of resource "
                           "variables, and dense updates of them, are written out";
  }
  OpBuilder::InsertionGuard guard(builder);
  auto read = [&](Value handle, StringRef what, ArrayRef<Attribute> before) -> Value {
    auto ref = llvm::dyn_cast<dfg::RefType>(handle.getType());
    if (!ref)
      return {};
    auto op =
        dfg::ReadVariableOp::create(builder, locate(node.name + "/" + what.str()), ref.getValueType(), handle, false);
    if (keepsOrder && !before.empty())
      op->setAttr(dfg::kControlAttr, builder.getArrayAttr(before));
    return failed(infer(op)) ? Value() : op.getValue();
  };
  SmallVector<unsigned> written = update.getWrittenOperands();
  for (unsigned operand : written)
    orderAccess(op, op->getOperand(operand), /*writes=*/true);
  auto noteWrite = [&](unsigned operand, Operation *by) {
    if (dfg::VarHandleOp variable = dfg::getVariableHandle(op->getOperand(operand)))
      accesses[variable.getVariable()] = {dfg::getNodeNameAttr(by), {}};
  };
  if (keepsOrder && !llvm::isa<dfg::AssignOp>(op)) {
    builder.setInsertionPoint(op);
    Value nothing = zerosLike(op->getOperand(1), node.name + "/nothing");
    FailureOr<Datum> added = nothing ? select(active, op->getOperand(1), nothing, node) : FailureOr<Datum>();
    if (failed(added))
      return failure();
    op->setOperand(1, added->value);
    noteWrite(written.front(), op);
    return success();
  }
  // What the update itself runs behind.
  llvm::SetVector<Attribute> before(dfg::getControl(op).begin(), dfg::getControl(op).end());
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && ordered.contains(def) && !dfg::isHandle(operand.getType()))
      if (StringAttr name = dfg::getNodeNameAttr(def))
        before.insert(name);
  builder.setInsertionPoint(op);
  SmallVector<Value> old;
  for (unsigned operand : written) {
    old.push_back(read(op->getOperand(operand), "old", before.getArrayRef()));
    if (!old.back())
      return fail(node) << "updates a variable that is not known where it is compiled";
  }
  auto selectNew = [&](Value value, Value before) -> Value {
    FailureOr<Datum> chosen = select(active, value, before, node);
    return failed(chosen) ? Value() : chosen->value;
  };
  if (llvm::isa<dfg::AssignOp>(op)) {
    Value value = selectNew(op->getOperand(1), old[0]);
    if (value)
      op->setOperand(1, value);
    noteWrite(written.front(), op);
    return success(value != nullptr);
  }
  builder.setInsertionPointAfter(op);
  for (auto [operand, before] : llvm::zip(written, old)) {
    Value handle = op->getOperand(operand), after = read(handle, "new", {});
    Value value = after ? selectNew(after, before) : Value();
    if (!value)
      return failure();
    auto assign = dfg::AssignOp::create(builder, locate(node.name + "/assign"), TypeRange(), handle, value);
    assign->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({dfg::getNodeName(op)}));
    if (failed(infer(assign)))
      return failure();
    noteWrite(operand, assign);
    // Where it gives a value, it is the first variable's; who takes it has the choice made.
    for (Value result : op->getResults()) {
      if (operand != written.front())
        continue;
      auto identity = dfg::IdentityOp::create(builder, locate(node.name + "/output"), value.getType(), value);
      identity->setAttr(dfg::kControlAttr, builder.getArrayAttr({dfg::getNodeNameAttr(assign)}));
      if (failed(infer(identity)))
        return failure();
      chosenResults[result] = identity.getResult();
      result.replaceAllUsesWith(identity.getResult());
    }
    effects.push_back(dfg::getNodeNameAttr(assign));
    if (node.scope.inPlace)
      node.scope.replacements[dfg::getNodeName(node.op)].push_back(dfg::getNodeNameAttr(assign));
  }
  // Whoever waits for the update waits for the choice.
  if (node.scope.inPlace)
    node.scope.replacements[dfg::getNodeName(node.op)].push_back(dfg::getNodeNameAttr(op));
  return success();
}

} // namespace distc

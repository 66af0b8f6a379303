//===- PassServedValues.cpp - Servers' values go into kept control flow -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/partition/WholeValues.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTPASSSERVEDVALUES
#include "passes/distribute/Passes.h.inc"

namespace {

struct DistPassServedValues : public impl::DistPassServedValuesBase<DistPassServedValues> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (variable->hasAttr(dist::kPlaceAttr))
        served.insert(variable.getSymName());
    if (served.empty())
      return;
    WholeValues wholeValues(module);
    for (auto graph : module.getOps<dfg::GraphOp>())
      if (failed(rewrite(graph, wholeValues)))
        return signalPassFailure();
  }

private:
  LogicalResult rewrite(dfg::GraphOp graph, WholeValues &wholeValues) {
    Block &block = graph.getBody().front();
    // Initializers ask whether the variable has a value before they read it.
    strategies::StepNodes step(graph);
    if (!step.isKnown())
      return success();
    // What is kept may update by the handles that it takes.
    llvm::DenseSet<Operation *> behindUpdates = dfg::findBehind(block, [](Operation *op) {
      auto isHandle = [](Type type) { return dfg::isHandle(type); };
      return llvm::isa<dfg::UpdateInterface>(op) ||
             (llvm::isa<dfg::OpaqueOp>(op) && llvm::any_of(op->getOperandTypes(), isHandle));
    });
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      if (WholeValues::handsOn(&op) && step.contains(&op))
        ops.push_back(&op);
    for (Operation *op : ops) {
      if (wholeValues.isGone(op))
        continue;
      llvm::MapVector<unsigned, Value> values;
      for (OpOperand &operand : op->getOpOperands())
        if (isServed(operand.get()) && wholeValues.onlyReads(operand))
          values[operand.getOperandNumber()] = read(op, operand.get(), behindUpdates);
      if (!values.empty() && failed(wholeValues.pass(op, values)))
        return failure();
    }
    return success();
  }

  bool isServed(Value value) const {
    dfg::VarHandleOp handle = dfg::isHandle(value.getType()) ? dfg::getVariableHandle(value) : nullptr;
    return handle && served.contains(handle.getVariable()) &&
           llvm::isa<TensorType>(llvm::cast<dfg::RefType>(handle.getHandle().getType()).getValueType());
  }

  /// Behind what `op` waits for.
  Value read(Operation *op, Value value, const llvm::DenseSet<Operation *> &behindUpdates) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(value);
    llvm::SetVector<Attribute> before;
    before.insert(dfg::getControl(op).begin(), dfg::getControl(op).end());
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && behindUpdates.contains(def))
        if (StringAttr name = dfg::getNodeNameAttr(def))
          before.insert(name);
    OpBuilder builder(op);
    const unsigned number = numReads[handle.getVariable()]++;
    std::string name = (handle.getVariable() + (number == 0 ? "/value" : "/value_" + llvm::Twine(number))).str();
    auto type = llvm::cast<dfg::RefType>(handle.getHandle().getType()).getValueType();
    auto read = dfg::ReadVariableOp::create(builder, NameLoc::get(builder.getStringAttr(name)), type,
                                            handle.getHandle(), /*implicit=*/false);
    if (!before.empty())
      read->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
    return read;
  }

  llvm::StringSet<> served;
  llvm::StringMap<unsigned> numReads;
};

} // namespace
} // namespace distc

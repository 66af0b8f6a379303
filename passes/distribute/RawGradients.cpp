//===- RawGradients.cpp - What must be reduced before updates ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/RawGradients.h"
#include <deque>

using namespace mlir;

namespace distc {
namespace {

class Walk {
public:
  Walk(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step)
      : graph(graph), flow(flow), step(step) {}

  LogicalResult run(const llvm::StringSet<> &variables) {
    SmallVector<Operation *> others;
    for (Operation &op : graph.getBody().front()) {
      if (failed(checkUnknownUpdate(&op)))
        return failure();
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update)
        continue;
      if (failed(checkSparse(update)))
        return failure();
      found.updates.push_back(&op);
      if (variables.contains(getVariable(&op)))
        start(&op);
      else
        others.push_back(&op);
    }
    if (failed(drain()))
      return failure();
    for (Operation *op : others)
      start(op);
    return drain();
  }

  RawGradients found;

private:
  struct Item {
    Value value;
    Operation *update;
  };

  static llvm::StringRef getVariable(Operation *op) {
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    unsigned written = update ? update.getWrittenOperands().front() : 0;
    auto handle = dfg::getVariableHandle(op->getOperand(written));
    return handle ? handle.getVariable() : "";
  }

  /// Whether what is wrong at `op` matters: a step runs it.
  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  bool isReplicated(Value value) const {
    Flow at = flow.get(value);
    return at.kind == Flow::Replicated;
  }

  LogicalResult checkSparse(dfg::UpdateInterface update) {
    if (update.getIndicesOperand() < 0 || !isInStep(update) ||
        llvm::all_of(update->getOperands(), [&](Value operand) { return isReplicated(operand); }))
      return success();
    return update.emitError() << "variable '" << getVariable(update) << "' is updated by a sparse gradient at node '"
                              << dfg::getNodeName(update)
                              << "': sparse gradients are not supported yet with several replicas; train it with one";
  }

  /// An operation without semantics may update a variable: then it must not depend on a replica's share.
  LogicalResult checkUnknownUpdate(Operation *op) {
    auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
    if (!opaque || !isInStep(op) || op->getNumOperands() == 0 || !dfg::isHandle(op->getOperand(0).getType()) ||
        llvm::all_of(op->getOperands(), [&](Value operand) { return isReplicated(operand); }))
      return success();
    llvm::StringRef kind = opaque.getOp();
    kind.consume_front("Resource");
    bool sparse = kind.starts_with("SparseApply") || kind.starts_with("Scatter");
    // With results and another name it is a read (ResourceGather).
    if (!sparse && !kind.starts_with("Apply") && !kind.starts_with("Assign") && op->getNumResults() > 0)
      return success();
    InFlightDiagnostic error = op->emitError()
                               << "node '" << dfg::getNodeName(op) << "' updates variable '" << getVariable(op)
                               << "' by operation '" << opaque.getOp() << "' from a share of the batch: ";
    if (sparse)
      return error << "sparse gradients are not supported yet with several replicas; train it with one";
    return error << "distc does not know the operation, so it cannot be synchronized";
  }

  void start(Operation *op) {
    for (Value operand : op->getOperands())
      if (!dfg::isHandle(operand.getType()))
        queue.push_back({operand, op});
  }

  LogicalResult drain() {
    while (!queue.empty()) {
      Item item = queue.front();
      queue.pop_front();
      if (visited.insert(item.value).second && failed(visit(item)))
        return failure();
    }
    return success();
  }

  LogicalResult visit(Item item) {
    Flow at = flow.get(item.value);
    switch (at.kind) {
    case Flow::Replicated:
      // Shape arithmetic without one scale is no value of the training.
      if (at.zero || !at.scale || *at.scale == 0)
        return success();
      if (*at.scale == 1)
        return reduce(item, dist::Reduction::Sum);
      return refuse(item,
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    case Flow::Sharded:
      return refuse(item, "still carries the batch's axis: it is not a sum or mean over the batch");
    case Flow::Partial:
      if (at.zero)
        return success();
      if (*at.scale == 0)
        return reduce(item, dist::Reduction::Mean);
      if (*at.scale == 1)
        return reduce(item, dist::Reduction::Sum);
      return refuse(item,
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    case Flow::Local:
      Operation *op = item.value.getDefiningOp();
      found.path.insert(op);
      for (Value operand : op->getOperands())
        if (!dfg::isHandle(operand.getType()))
          queue.push_back({operand, item.update});
      return success();
    }
    return success();
  }

  LogicalResult reduce(Item item, dist::Reduction reduction) {
    found.values.insert({item.value, {reduction, getVariable(item.update)}});
    return success();
  }

  LogicalResult refuse(Item item, llvm::StringRef why) {
    if (!isInStep(item.update))
      return success();
    Operation *op = item.value.getDefiningOp();
    InFlightDiagnostic error = item.update->emitError()
                               << "variable '" << getVariable(item.update)
                               << "' cannot be synchronized: the value of node '" << dfg::getNodeName(op) << "' ("
                               << flow.explain(item.value) << "), which its update '" << dfg::getNodeName(item.update)
                               << "' depends on, " << why;
    error.attachNote(op->getLoc()) << "the value is made here by '" << op->getName() << "'";
    return error;
  }

  dfg::GraphOp graph;
  const BatchFlow &flow;
  const strategies::StepNodes &step;
  std::deque<Item> queue;
  llvm::DenseSet<Value> visited;
};

} // namespace

llvm::FailureOr<RawGradients> findRawGradients(dfg::GraphOp graph, const BatchFlow &flow,
                                               const strategies::StepNodes &step, const llvm::StringSet<> &variables) {
  Walk walk(graph, flow, step);
  if (failed(walk.run(variables)))
    return failure();
  return std::move(walk.found);
}

} // namespace distc

//===- RawGradients.cpp - What must be reduced before updates ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/RawGradients.h"
#include "passes/distribute/SparseGradients.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

using namespace mlir;

namespace distc {
namespace {

class Walk {
public:
  Walk(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step, const Synchronizations &ways)
      : graph(graph), flow(flow), step(step), ways(ways) {}

  LogicalResult run() {
    SmallVector<Operation *> entries, others;
    for (Operation &op : graph.getBody().front()) {
      if (failed(checkUnknownUpdate(&op)))
        return failure();
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update)
        continue;
      llvm::StringRef variable = getUpdatedVariable(&op);
      // Statistics of a replica that waits for no other are its own.
      if (ways.hasAsync && !ways.hasEntry(variable) && !ways.get(variable).place)
        continue;
      found.updates.push_back(&op);
      (ways.hasEntry(variable) ? entries : others).push_back(&op);
    }
    // Before the walk: it ends at their rows, whichever update it comes from.
    for (Operation *op : found.updates)
      if (failed(findSparse(llvm::cast<dfg::UpdateInterface>(op))))
        return failure();
    for (ArrayRef<Operation *> updates : {ArrayRef(entries), ArrayRef(others)}) {
      for (Operation *op : updates)
        if (failed(start(op)))
          return failure();
      if (failed(drain()))
        return failure();
    }
    return success();
  }

  RawGradients found;

private:
  struct Item {
    Value value;
    Operation *update;
  };

  /// Whether what is wrong at `op` matters: a step runs it.
  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  bool isReplicated(Value value) const {
    Flow at = flow.get(value);
    return at.kind == Flow::Replicated;
  }

  LogicalResult findSparse(dfg::UpdateInterface update) {
    if (update.getIndicesOperand() < 0 ||
        llvm::all_of(update->getOperands(), [&](Value operand) { return isReplicated(operand); }))
      return success();
    llvm::StringRef variable = getUpdatedVariable(update);
    Value indices = update->getOperand(update.getIndicesOperand());
    Value values = update->getOperand(update.getGradientOperand());
    if (ways.get(variable).async) {
      take(indices, values, dist::Reduction::Sum, variable);
      found.indexUses[{update, indices}] = values;
      return success();
    }
    std::optional<SparseGradient> gradient = findSparseGradient(update, flow);
    if (!gradient) {
      // What is dense on the way, or the same everywhere, is found by the walk.
      return success();
    }
    std::optional<int> scale = flow.get(gradient->values).scale;
    if (flow.get(gradient->values).zero)
      scale = 0;
    // The whole batch's rows are the replicas' rows, divided by N where each was divided by its share of the batch.
    if (!scale || (*scale != 0 && *scale != -1))
      return refuse({gradient->values, update},
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    dist::Reduction reduction = *scale == 0 ? dist::Reduction::Sum : dist::Reduction::Mean;
    if (ways.get(variable).place) {
      wholeRows.insert({gradient->values, {reduction, variable, gradient->indices}});
      chooseOwnRows(*gradient);
    }
    take(gradient->indices, gradient->values, reduction, variable);
    found.path.insert(gradient->path.begin(), gradient->path.end());
    for (Operation *op : gradient->path)
      found.indexUses[{op, gradient->indices}] = gradient->values;
    found.indexUses[{update, gradient->indices}] = gradient->values;
    return success();
  }

  void take(Value indices, Value values, dist::Reduction reduction, llvm::StringRef variable) {
    found.values.insert({values, {ways.get(variable).reduction.value_or(reduction), variable, indices}});
    found.indices.insert({indices, values});
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
                               << "node '" << dfg::getNodeName(op) << "' updates variable '" << getUpdatedVariable(op)
                               << "' by operation '" << opaque.getOp() << "' from a share of the batch: ";
    if (sparse)
      return error << "distc does not know the operation, so its sparse gradient cannot be synchronized";
    return error << "distc does not know the operation, so it cannot be synchronized";
  }

  LogicalResult start(Operation *op) {
    bool async = ways.get(getUpdatedVariable(op)).async;
    for (Value operand : op->getOperands()) {
      if (dfg::isHandle(operand.getType()))
        continue;
      if (!async) {
        queue.push_back({operand, op});
        continue;
      }
      Flow at = flow.get(operand);
      if (at.kind == Flow::Replicated || found.contains(operand))
        continue;
      if (at.kind == Flow::Sharded)
        return refuse({operand, op}, "still carries the batch's axis: it is not a sum or mean over the batch");
      dist::Reduction reduction =
          at.kind == Flow::Partial && at.scale == 1 ? dist::Reduction::Sum : dist::Reduction::Mean;
      found.values.insert({operand, {reduction, getUpdatedVariable(op), {}}});
    }
    return success();
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
    if (found.contains(item.value))
      return success();
    if (auto rows = wholeRows.find(item.value); rows != wholeRows.end()) {
      take(rows->second.indices, item.value, rows->second.reduction, rows->second.variable);
      return success();
    }
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
      // Rows that are made of a sparse gradient's become those of all replicas with it.
      if (Operation *op = item.value.getDefiningOp(); !found.indices.empty() && worksOnRows(op)) {
        walkThrough(op, item.update);
        return success();
      }
      return refuse(item, "still carries the batch's axis: it is not a sum or mean over the batch");
    case Flow::Partial:
      if (at.zero)
        return success();
      if (*at.scale == 0)
        return reduce(item, dist::Reduction::Mean);
      if (*at.scale == 1)
        return reduce(item, dist::Reduction::Sum);
      // A norm over rows that were divided by the batch's size: no sum of the replicas' norms, but that of all rows.
      if (sumsRows(item.value.getDefiningOp())) {
        walkThrough(item.value.getDefiningOp(), item.update);
        return success();
      }
      return refuse(item,
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    case Flow::Local:
      walkThrough(item.value.getDefiningOp(), item.update);
      return success();
    }
    return success();
  }

  /// Whether all that op sums over the batch are a sparse gradient's values.
  bool sumsRows(Operation *op) const {
    bool any = false;
    for (Value operand : op->getOperands())
      if (flow.get(operand).kind == Flow::Sharded) {
        auto rows = found.values.find(operand);
        if (!wholeRows.contains(operand) && (rows == found.values.end() || !rows->second.indices))
          return false;
        any = true;
      }
    return any;
  }

  void walkThrough(Operation *op, Operation *update) {
    found.path.insert(op);
    for (Value operand : op->getOperands())
      if (!dfg::isHandle(operand.getType()))
        queue.push_back({operand, update});
  }

  LogicalResult reduce(Item item, dist::Reduction reduction) {
    llvm::StringRef variable = getUpdatedVariable(item.update);
    found.values.insert({item.value, {ways.get(variable).reduction.value_or(reduction), variable, {}}});
    return success();
  }

  LogicalResult refuse(Item item, llvm::StringRef why) {
    if (!isInStep(item.update))
      return success();
    Operation *op = item.value.getDefiningOp();
    InFlightDiagnostic error = item.update->emitError()
                               << "variable '" << getUpdatedVariable(item.update)
                               << "' cannot be synchronized: the value of node '" << dfg::getNodeName(op) << "' ("
                               << flow.explain(item.value) << "), which its update '" << dfg::getNodeName(item.update)
                               << "' depends on, " << why;
    error.attachNote(op->getLoc()) << "the value is made here by '" << op->getName() << "'";
    return error;
  }

  dfg::GraphOp graph;
  const BatchFlow &flow;
  const strategies::StepNodes &step;
  const Synchronizations &ways;
  /// Of sparse gradients that servers are pushed: all replicas' rows, for what needs them (a norm).
  llvm::DenseMap<Value, RawGradient> wholeRows;
  std::deque<Item> queue;
  llvm::DenseSet<Value> visited;
};

} // namespace

std::string getFreeName(Block &block, const llvm::Twine &wanted) {
  llvm::StringSet<> taken;
  for (Operation &op : block)
    taken.insert(dfg::getNodeName(&op));
  std::string base = wanted.str(), name = base;
  for (unsigned count = 1; taken.contains(name); ++count)
    name = base + "_" + std::to_string(count);
  return name;
}

llvm::StringRef getUpdatedVariable(Operation *op) {
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  unsigned written = update ? update.getWrittenOperands().front() : 0;
  auto handle = dfg::getVariableHandle(op->getOperand(written));
  return handle ? handle.getVariable() : "";
}

llvm::FailureOr<RawGradients> findRawGradients(dfg::GraphOp graph, const BatchFlow &flow,
                                               const strategies::StepNodes &step, const Synchronizations &ways) {
  Walk walk(graph, flow, step, ways);
  if (failed(walk.run()))
    return failure();
  return std::move(walk.found);
}

} // namespace distc

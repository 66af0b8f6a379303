//===- PruneWorker.cpp - What the chief does for all workers ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The chief runs what is placed: servers' part of a step, their variables'
// initialization and restoring. Where nothing waits, every worker updates by
// itself.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/tensorflow/ControlEdges.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {
namespace {

class Pruner {
public:
  explicit Pruner(WorkerGraph &worker) : worker(worker), step(worker.graph) {}

  void run() {
    findOwn();
    llvm::SetVector<Operation *> erased;
    for (Operation &op : worker.block)
      if (!own.contains(&op) && isChiefs(&op)) {
        // Collections name what initializes a variable: it stays, and is not run.
        if (step.isKnown() && !step.contains(&op) && !llvm::isa<dist::DISTDialect>(op.getDialect()))
          worker.excluded.insert(dfg::getNodeName(&op));
        else
          erased.insert(&op);
      }
    for (unsigned index = 0; index < erased.size(); ++index)
      for (Operation *user : erased[index]->getUsers())
        erased.insert(user);
    inheritControl(worker.block, {erased.begin(), erased.end()});
    for (Operation *op : erased)
      op->dropAllUses();
    for (Operation *op : erased) {
      worker.nodes.forget(op);
      op->erase();
    }
  }

private:
  static bool isPlaced(Operation *op) { return op->hasAttr(dist::kPlaceAttr); }

  bool isChiefs(Operation *op) {
    if (isPlaced(op))
      return true;
    // Restoring has no place: it is no part of a step.
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    dfg::VarHandleOp handle =
        update ? dfg::getVariableHandle(op->getOperand(update.getWrittenOperands().front())) : nullptr;
    return handle && worker.getPlace(handle.getVariable());
  }

  /// What every worker runs of what is placed: what follows from gradients that nothing waits for, and what that needs.
  void findOwn() {
    bool waits = false;
    SmallVector<Operation *> work;
    for (auto take : worker.block.getOps<dist::TakeOp>()) {
      if (take.getAsync())
        work.push_back(take);
      else
        waits = true;
    }
    if (work.empty())
      return;
    if (!waits)
      for (Operation &op : worker.block)
        if (isPlaced(&op) && step.contains(&op))
          work.push_back(&op);
    llvm::DenseSet<Operation *> follows;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!isPlaced(op) || !follows.insert(op).second)
        continue;
      work.append(op->user_begin(), op->user_end());
    }
    work.assign(follows.begin(), follows.end());
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!own.insert(op).second)
        continue;
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && isPlaced(def))
          work.push_back(def);
    }
    // What is sent for them.
    llvm::StringSet<> accumulators;
    for (Operation *op : own)
      if (auto take = llvm::dyn_cast<dist::TakeOp>(op))
        accumulators.insert(take.getAccumulator());
    for (auto push : worker.block.getOps<dist::PushOp>())
      if (accumulators.contains(push.getAccumulator()))
        own.insert(push);
  }

  WorkerGraph &worker;
  strategies::StepNodes step;
  llvm::DenseSet<Operation *> own;
};

} // namespace

void pruneChiefsWork(WorkerGraph &worker) {
  if (!worker.hasPlaces())
    return;
  if (!worker.isChief()) {
    Pruner(worker).run();
    return;
  }
  strategies::StepNodes step(worker.graph);
  StringAttr train = worker.graph.getTrainOpAttr();
  for (Operation &op : worker.block)
    if (llvm::isa<dfg::UpdateInterface>(op) && op.hasAttr(dist::kPlaceAttr) && step.contains(&op) &&
        !(train && dfg::getNodeName(&op) == train.getValue()))
      worker.servers.updates.push_back(&op);
}

void orderUpdates(WorkerGraph &worker) {
  ArrayRef<Operation *> takes = worker.servers.takes;
  if (takes.empty())
    return;
  worker.nodes.setPlaceAtEnd("synchronization");
  // A gradient that follows from an update of the same step cannot come before it.
  SmallVector<Operation *> early, late;
  for (Operation *take : takes)
    (worker.servers.late.contains(take) ? late : early).push_back(take);
  Operation *taken = worker.nodes.group("taken", early);
  Operation *all = taken;
  if (!late.empty()) {
    all = worker.nodes.group("taken_late", late);
    StockNodes::addControl(all, taken);
  }
  for (Operation *update : worker.servers.updates)
    StockNodes::addControl(update, worker.servers.earlyUpdates.contains(update) ? taken : all);
}

} // namespace distc

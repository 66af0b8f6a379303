//===- MarkBatchUpdates.cpp - Which updates happen at each batch --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/BatchNodes.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/synchronize/BehindUpdates.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTMARKBATCHUPDATES
#include "passes/distribute/Passes.h.inc"

namespace {

using UpdatesOfVariables = llvm::StringMap<SmallVector<Operation *>>;

/// `nodes`, and what they are computed from, but for nodes of `end`: also by way of variables that `updates` change.
llvm::DenseSet<Operation *> findSources(SmallVector<Operation *> nodes, const llvm::DenseSet<Operation *> &end,
                                        const UpdatesOfVariables &updates) {
  llvm::DenseSet<Operation *> sources;
  while (!nodes.empty()) {
    Operation *op = nodes.pop_back_val();
    if (!op || end.contains(op) || !sources.insert(op).second)
      continue;
    // With what a loop's body takes from outside.
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        nodes.push_back(operand.getDefiningOp());
        if (dfg::VarHandleOp handle = dfg::getVariableHandle(operand))
          if (auto known = updates.find(handle.getVariable()); known != updates.end())
            nodes.append(known->second);
      }
    });
  }
  return sources;
}

struct DistMarkBatchUpdates : public impl::DistMarkBatchUpdatesBase<DistMarkBatchUpdates> {
  void runOnOperation() override {
    FailureOr<SyncPolicies> policies = SyncPolicies::read(getOperation());
    if (failed(policies))
      return signalPassFailure();
    if (policies->accumulateSteps > 1)
      for (auto graph : getOperation().getOps<dfg::GraphOp>())
        if (failed(mark(graph, *policies)))
          return signalPassFailure();
    // It writes attributes, which the flow does not depend on.
    markAnalysesPreserved<BatchFlowAnalysis>();
  }

private:
  /// Of what changes without seeing the batch, updates of variables of which only updates in `updates` are made (the
  /// count of batches by which a mean of all of them is kept): they count batches as well.
  static void addCounters(SmallVectorImpl<Operation *> &updates, SmallVectorImpl<Operation *> &counters, Block &block,
                          const strategies::StepNodes &step) {
    for (bool changed = true; changed;) {
      changed = false;
      llvm::erase_if(counters, [&](Operation *counter) {
        llvm::StringRef variable = getUpdatedVariable(counter);
        bool isRead = false;
        for (Operation &op : block) {
          auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
          if (!update || !step.contains(&op) || &op == counter)
            continue;
          const bool reads = llvm::any_of(findSources({&op}, {}, {}), [&](Operation *source) {
            auto handle = llvm::dyn_cast<dfg::VarHandleOp>(source);
            return handle && handle.getVariable() == variable;
          });
          if (reads && !llvm::is_contained(updates, &op))
            return false;
          isRead |= reads;
        }
        if (isRead)
          updates.push_back(counter);
        changed |= isRead;
        return isRead;
      });
    }
  }

  LogicalResult mark(dfg::GraphOp graph, const SyncPolicies &policies) {
    strategies::StepNodes step(graph);
    Block &block = graph.getBody().front();
    Value loss = getLoss(graph);
    if (!loss || !step.isKnown())
      return success();
    const FailureOr<BatchFlow> &flow = getChildAnalysis<BatchFlowAnalysis>(graph).flow;
    if (failed(flow))
      return failure();

    dist::BatchNodes nodes = dist::findBatchNodes(
        block, [&](Operation *op) { return step.contains(op); },
        [&](Operation *op) {
          auto feed = llvm::dyn_cast<dfg::PlaceholderOp>(op);
          return feed && flow->isBatched(feed);
        });
    // What the loss depends on may be trained, whether the strategy names it or not.
    llvm::DenseSet<Operation *> forward = findSources({loss.getDefiningOp()}, {}, {});
    llvm::StringSet<> ofLoss;
    for (Operation *op : forward)
      if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
        ofLoss.insert(handle.getVariable());
    SmallVector<Operation *> updates, trained;
    UpdatesOfVariables ofVariables;
    for (Operation &op : block)
      if (llvm::isa<dfg::UpdateInterface>(op) && step.contains(&op)) {
        llvm::StringRef variable = getUpdatedVariable(&op);
        (policies.hasEntry(variable) || ofLoss.contains(variable) ? trained : updates).push_back(&op);
        ofVariables[variable].push_back(&op);
      }
    llvm::DenseSet<Operation *> backward = findSources(trained, forward, ofVariables);
    SmallVector<Operation *> counters;
    for (Operation *op : updates)
      if (!policies.hasAsync && !backward.contains(op) && !policies.get(getUpdatedVariable(op)).place &&
          !nodes.seeBatch.contains(op) && !nodes.seeSizes.contains(op))
        counters.push_back(op);
    llvm::erase_if(updates, [&](Operation *op) {
      // What is done without synchronization each replica does as it is. A slot changes with its variable.
      if (policies.hasAsync || backward.contains(op) || policies.get(getUpdatedVariable(op)).place ||
          (!nodes.seeBatch.contains(op) && !nodes.seeSizes.contains(op)))
        return true;
      return llvm::any_of(findSources({op}, forward, {}), [&](Operation *source) {
        return backward.contains(source) && nodes.seeBatch.contains(source);
      });
    });
    addCounters(updates, counters, block, step);
    for (Operation *op : updates)
      op->setAttr(dist::kEachBatchAttr, UnitAttr::get(&getContext()));
    // What waits for an update that is not marked is not marked, and there are more to wait for then.
    for (bool changed = true; changed;) {
      const llvm::DenseSet<Operation *> behind = findBehindUpdates(graph, step).all;
      changed = false;
      for (Operation *op : updates)
        changed |= behind.contains(op) && op->removeAttr(dist::kEachBatchAttr);
    }
    return success();
  }
};

} // namespace
} // namespace distc

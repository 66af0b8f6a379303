//===- InsertSynchronizers.cpp - Synchronizes raw gradients ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/BatchNodes.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/synchronize/BehindUpdates.h"
#include "passes/distribute/synchronize/OwnRows.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/distribute/synchronize/RowsToOwners.h"
#include "passes/distribute/synchronize/ShardedUpdates.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "passes/distribute/synchronize/Synchronizer.h"
#include "passes/distribute/synchronize/VariableAverages.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTINSERTSYNCHRONIZERS
#include "passes/distribute/Passes.h.inc"

namespace {

struct DistInsertSynchronizers : public impl::DistInsertSynchronizersBase<DistInsertSynchronizers> {
  using DistInsertSynchronizersBase::DistInsertSynchronizersBase;

  void runOnOperation() override {
    FailureOr<SyncPolicies> policies = SyncPolicies::read(getOperation());
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(getOperation());
    if (failed(policies) || failed(applied))
      return signalPassFailure();
    policies->formBuckets(getOperation(), *applied, static_cast<int64_t>(bucketMb) << 20, eachApart);
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(synchronize(graph, *policies)))
        return signalPassFailure();
  }

private:
  LogicalResult synchronize(dfg::GraphOp graph, const SyncPolicies &policies) {
    // One replica's gradients are the whole batch's, where it also has all variables and updates at each batch.
    if (policies.replicas == 1 && !policies.hasSync && !policies.hasAsync && !policies.serves &&
        policies.accumulateSteps == 1)
      return policies.averagesDecay > 0 ? addVariableAverages(graph, policies, strategies::StepNodes(graph))
                                        : success();
    const FailureOr<BatchFlow> &flow = getChildAnalysis<BatchFlowAnalysis>(graph).flow;
    if (failed(flow))
      return failure();
    if (policies.replicas == 1 ||
        llvm::none_of(graph.getBody().front(), [](Operation &op) { return op.hasAttr(dist::kEachBatchAttr); }))
      return synchronizeGradients(graph, *flow, policies);
    if (failed(synchronizeEachBatch(graph, *flow, policies)))
      return failure();
    FailureOr<BatchFlow> changed = BatchFlow::compute(graph);
    return failed(changed) ? failure() : synchronizeGradients(graph, *changed, policies);
  }

  /// What happens at each batch, as if nothing were accumulated. The rest sees its reductions.
  LogicalResult synchronizeEachBatch(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies) {
    strategies::StepNodes step(graph);
    FailureOr<RawGradients> values = findRawGradients(graph, flow, step, policies, UpdatesOf::EachBatch);
    if (failed(values))
      return failure();
    Synchronizer synchronizer(graph, flow, *values, policies, step, UpdatesOf::EachBatch);
    synchronizer.run(UpdatePlacement(graph, *values, policies, synchronizer.getConsumers()));
    return success();
  }

  LogicalResult synchronizeGradients(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies) {
    if (!chooseOwnRowsFirst(graph, flow, policies))
      return synchronize(graph, flow, policies);
    FailureOr<BatchFlow> changed = BatchFlow::compute(graph);
    return failed(changed) ? failure() : synchronize(graph, *changed, policies);
  }

  LogicalResult synchronize(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies) {
    strategies::StepNodes step(graph);
    FailureOr<RawGradients> gradients = findRawGradients(graph, flow, step, policies, UpdatesOf::AllBatches);
    if (failed(gradients))
      return failure();
    if (policies.accumulateSteps > 1) {
      if (step.isKnown() && gradients->values.empty())
        return graph.emitError() << "accumulate_steps is " << policies.accumulateSteps
                                 << ", but no update of the training step depends on the batch, so that there is "
                                    "nothing to accumulate; take accumulate_steps=1";
      freeFromUpdates(graph, *gradients, step);
    }
    if (remarks)
      for (const auto &[value, gradient] : gradients->values)
        value.getDefiningOp()->emitRemark() << "'" << gradient.variable << "' is synchronized here: node '"
                                            << dfg::getNodeName(value.getDefiningOp()) << "', " << flow.explain(value);
    Synchronizer synchronizer(graph, flow, *gradients, policies, step, UpdatesOf::AllBatches);
    UpdatePlacement placement(graph, *gradients, policies, synchronizer.getConsumers());
    if (failed(checkBackupWorkers(*gradients, policies, placement, synchronizer.getConsumers())))
      return failure();
    synchronizer.run(placement);
    if (failed(expectOtherDraws(graph, step)))
      return failure();
    if ((policies.hasSync || policies.hasAsync) &&
        failed(finishServers(graph, policies, step, synchronizer.getConsumers(), placement)))
      return failure();
    if (policies.replicas > 1 && !policies.serves && (policies.hasShares || policies.hasOwners))
      shardUpdates(graph, policies, step);
    if (policies.replicas > 1 && !policies.serves && policies.hasOwners)
      sendRowsToOwners(graph);
    if (policies.averagesDecay > 0 && failed(addVariableAverages(graph, policies, step)))
      return failure();
    numberBuckets(graph);
    return success();
  }

  /// Random bits that a step makes itself of state (JAX's generators: nothing else in a model computes with exclusive
  /// or) would be the same in all batches of an update, where that state changes once for all of them.
  LogicalResult expectOtherDraws(dfg::GraphOp graph, const strategies::StepNodes &step) {
    Block &block = graph.getBody().front();
    if (block.getOps<dist::AccumulateOp>().empty())
      return success();
    auto isInStep = [&](Operation *op) { return !step.isKnown() || step.contains(op); };
    dist::BatchNodes nodes = dist::findBatchNodes(block, isInStep);
    llvm::StringSet<> changing;
    for (Operation &op : block)
      if (llvm::isa<dfg::UpdateInterface>(op) && isInStep(&op) && nodes.runPerUpdate.contains(&op))
        changing.insert(getUpdatedVariable(&op));
    // The variable that a value is made of, and its random bits.
    llvm::DenseMap<Value, llvm::StringRef> reads, draws;
    for (Operation &op : block) {
      llvm::StringRef read, drawn;
      for (Value operand : op.getOperands()) {
        if (auto handle = dfg::getVariableHandle(operand); handle && changing.contains(handle.getVariable()))
          read = handle.getVariable();
        read = read.empty() ? reads.lookup(operand) : read;
        drawn = drawn.empty() ? draws.lookup(operand) : drawn;
      }
      if (llvm::isa<dist::AccumulateOp>(op)) {
        if (!drawn.empty())
          return op.getOperand(0).getDefiningOp()->emitError()
                 << "gradients are accumulated over several batches, which would all draw the same random numbers: "
                    "variable '"
                 << drawn << "', which they are made of, changes once for all of them; take accumulate_steps=1, or "
                 << "random numbers of a key that no update sees";
        continue;
      }
      if (llvm::isa<dfg::BitwiseXorOp>(op) && drawn.empty())
        drawn = read;
      for (Value result : op.getResults()) {
        if (!read.empty())
          reads[result] = read;
        if (!drawn.empty())
          draws[result] = drawn;
      }
    }
    return success();
  }

  /// Gradients of a server's variable that workers need too are reduced by all of them, and rows that stay apart are of
  /// each: none can be spare.
  LogicalResult checkBackupWorkers(const RawGradients &gradients, const SyncPolicies &policies,
                                   const UpdatePlacement &placement, const llvm::DenseSet<Operation *> &consumers) {
    if (policies.required == policies.replicas)
      return success();
    for (const auto &[value, gradient] : gradients.values) {
      const SyncPolicy &policy = policies.get(gradient.variable);
      if (policy.place && !policy.async && !placement.get(value))
        return value.getDefiningOp()->emitError()
               << "the gradient of variable '" << gradient.variable
               << "' is needed by updates of variables that every worker has, or by the loss, which every worker "
                  "gives, so that each of "
               << policies.replicas << " replicas must give one, but replicas_to_aggregate is " << policies.required
               << "; hold all of these variables on servers, and let no update need the loss";
      if (policy.place && !policy.async && gradient.indices && !canAddRows(gradients, value, consumers))
        return value.getDefiningOp()->emitError()
               << "the rows of the sparse gradient of variable '" << gradient.variable
               << "' are used as each replica made them (in a norm, or by an update that does not add rows of one "
                  "index), so that each of "
               << policies.replicas << " replicas must give its own, but replicas_to_aggregate is " << policies.required
               << "; add rows of one index first, or let replicas_to_aggregate be " << policies.replicas;
    }
    return success();
  }
};

} // namespace
} // namespace distc

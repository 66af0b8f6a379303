//===- InsertSynchronizers.cpp - Synchronizes raw gradients ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/Passes.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/synchronize/OwnRows.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/distribute/synchronize/ShardedUpdates.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "passes/distribute/synchronize/Synchronizer.h"
#include "passes/distribute/synchronize/VariableAverages.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTINSERTSYNCHRONIZERS
#include "passes/distribute/Passes.h.inc"

namespace {

struct DistInsertSynchronizers : public impl::DistInsertSynchronizersBase<DistInsertSynchronizers> {
  using DistInsertSynchronizersBase::DistInsertSynchronizersBase;

  void runOnOperation() override {
    FailureOr<SyncPolicies> policies = SyncPolicies::read(getOperation(), getAnalysis<AppliedStrategyAnalysis>());
    FailureOr<AppliedStrategy> applied = getAnalysis<AppliedStrategyAnalysis>().read();
    if (failed(policies) || failed(applied))
      return signalPassFailure();
    policies->formBuckets(getOperation(), *applied, static_cast<int64_t>(bucketMb) << 20, eachApart);
    serves = getServing(getOperation(), *applied).has_value();
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(synchronize(graph, *policies)))
        return signalPassFailure();
  }

private:
  /// What servers in the replicas' process do on their own is parted from all-reduces later (dist-serve-updates).
  bool serves = false;

  LogicalResult synchronize(dfg::GraphOp graph, const SyncPolicies &policies) {
    // One replica's gradients are the whole batch's, where it also has all variables and updates at each batch.
    if (policies.replicas == 1 && !policies.hasSync && !policies.hasAsync && !serves && policies.accumulateSteps == 1 &&
        policies.averagesDecay == 0)
      return success();
    const FailureOr<BatchFlow> &flow = getChildAnalysis<BatchFlowAnalysis>(graph).flow;
    if (failed(flow))
      return failure();
    if (!chooseOwnRowsFirst(graph, *flow, policies))
      return synchronize(graph, *flow, policies);
    FailureOr<BatchFlow> changed = BatchFlow::compute(graph);
    return failed(changed) ? failure() : synchronize(graph, *changed, policies);
  }

  LogicalResult synchronize(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies) {
    strategies::StepNodes step(graph);
    FailureOr<RawGradients> gradients = findRawGradients(graph, flow, step, policies);
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
    Synchronizer synchronizer(graph, flow, *gradients, policies, step);
    UpdatePlacement placement(graph, *gradients, policies, synchronizer.getConsumers());
    if (failed(checkBackupWorkers(*gradients, policies, placement, synchronizer.getConsumers())))
      return failure();
    synchronizer.run(placement);
    if ((policies.hasSync || policies.hasAsync) &&
        failed(finishServers(graph, policies, step, synchronizer.getConsumers(), placement)))
      return failure();
    if (policies.replicas > 1 && !serves && (policies.hasShares || policies.hasOwners))
      shardUpdates(graph, policies, step);
    if (policies.averagesDecay > 0 && failed(addVariableAverages(graph, policies, step)))
      return failure();
    numberBuckets(graph);
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
               << "' is needed by updates of variables that every worker has, so that each of " << policies.replicas
               << " replicas must give one, but replicas_to_aggregate is " << policies.required
               << "; hold all of these variables on servers";
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

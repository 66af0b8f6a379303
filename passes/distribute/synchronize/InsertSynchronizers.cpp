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
    FailureOr<Synchronizations> ways = Synchronizations::read(getOperation(), getAnalysis<AppliedStrategyAnalysis>());
    if (failed(ways))
      return signalPassFailure();
    FailureOr<AppliedStrategy> applied = getAnalysis<AppliedStrategyAnalysis>().read();
    serves = succeeded(applied) && getServing(getOperation(), *applied);
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(synchronize(graph, *ways)))
        return signalPassFailure();
  }

private:
  /// What servers in the replicas' process do on their own is parted from all-reduces later (dist-serve-updates).
  bool serves = false;

  LogicalResult synchronize(dfg::GraphOp graph, const Synchronizations &ways) {
    // One replica's gradients are the whole batch's, where it also has all variables and updates at each batch.
    if (ways.replicas == 1 && !ways.hasSync && !ways.hasAsync && !serves && ways.accumulateSteps == 1 &&
        ways.averagesDecay == 0)
      return success();
    const FailureOr<BatchFlow> &flow = getChildAnalysis<BatchFlowAnalysis>(graph).flow;
    if (failed(flow))
      return failure();
    if (!chooseOwnRowsFirst(graph, *flow, ways))
      return synchronize(graph, *flow, ways);
    FailureOr<BatchFlow> changed = BatchFlow::compute(graph);
    return failed(changed) ? failure() : synchronize(graph, *changed, ways);
  }

  LogicalResult synchronize(dfg::GraphOp graph, const BatchFlow &flow, const Synchronizations &ways) {
    strategies::StepNodes step(graph);
    FailureOr<RawGradients> gradients = findRawGradients(graph, flow, step, ways);
    if (failed(gradients))
      return failure();
    if (ways.accumulateSteps > 1) {
      if (step.isKnown() && gradients->values.empty())
        return graph.emitError() << "accumulate_steps is " << ways.accumulateSteps
                                 << ", but no update of the training step depends on the batch, so that there is "
                                    "nothing to accumulate; take accumulate_steps=1";
      freeFromUpdates(graph, *gradients, step);
    }
    if (remarks)
      for (const auto &[value, gradient] : gradients->values)
        value.getDefiningOp()->emitRemark() << "'" << gradient.variable << "' is synchronized here: node '"
                                            << dfg::getNodeName(value.getDefiningOp()) << "', " << flow.explain(value);
    Synchronizer synchronizer(graph, flow, *gradients, ways);
    Sites sites(graph, *gradients, ways, synchronizer.getConsumers());
    if (failed(checkSpare(*gradients, ways, sites, synchronizer.getConsumers())))
      return failure();
    synchronizer.run(sites);
    if ((ways.hasSync || ways.hasAsync) && failed(finishServers(graph, ways, step, synchronizer.getConsumers(), sites)))
      return failure();
    if (ways.replicas > 1 && !serves && (ways.hasShares || ways.hasOwners))
      shardUpdates(graph, ways, step);
    if (ways.averagesDecay > 0)
      addVariableAverages(graph, ways, step);
    numberBuckets(graph);
    return success();
  }

  /// Gradients of a server's variable that workers need too are reduced by all of them, and rows that stay apart are of
  /// each: none can be spare.
  LogicalResult checkSpare(const RawGradients &gradients, const Synchronizations &ways, const Sites &sites,
                           const llvm::DenseSet<Operation *> &consumers) {
    if (ways.required == ways.replicas)
      return success();
    for (const auto &[value, gradient] : gradients.values) {
      const Synchronization &way = ways.get(gradient.variable);
      if (way.place && !way.async && !sites.get(value))
        return value.getDefiningOp()->emitError()
               << "the gradient of variable '" << gradient.variable
               << "' is needed by updates of variables that every worker has, so that each of " << ways.replicas
               << " replicas must give one, but replicas_to_aggregate is " << ways.required
               << "; hold all of these variables on servers";
      if (way.place && !way.async && gradient.indices && !canAddRows(gradients, value, consumers))
        return value.getDefiningOp()->emitError()
               << "the rows of the sparse gradient of variable '" << gradient.variable
               << "' are used as each replica made them (in a norm, or by an update that does not add rows of one "
                  "index), so that each of "
               << ways.replicas << " replicas must give its own, but replicas_to_aggregate is " << ways.required
               << "; add rows of one index first, or let replicas_to_aggregate be " << ways.replicas;
    }
    return success();
  }
};

} // namespace
} // namespace distc

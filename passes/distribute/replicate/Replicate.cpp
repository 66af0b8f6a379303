//===- Replicate.cpp - Shares of the batch ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTREPLICATE
#include "passes/distribute/Passes.h.inc"

namespace {

struct DistReplicate : public impl::DistReplicateBase<DistReplicate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(dist::getTopology(module)))
      return signalPassFailure();
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      const FailureOr<BatchFlow> &flow = getChildAnalysis<BatchFlowAnalysis>(graph).flow;
      if (failed(flow))
        return signalPassFailure();
      markShares(graph, *flow);
    }
    // It writes attributes, which the flow does not depend on.
    markAnalysesPreserved<BatchFlowAnalysis>();
  }

private:
  void markShares(dfg::GraphOp graph, const BatchFlow &flow) {
    Builder builder(graph.getContext());
    for (Operation &op : graph.getBody().front()) {
      if (auto feed = llvm::dyn_cast<dfg::PlaceholderOp>(op))
        op.setAttr(dist::kFeedAttr, builder.getStringAttr(flow.isBatched(feed) ? dist::kSharded : dist::kWhole));
      else if (op.hasTrait<dfg::DrawsNumbers>() && flow.get(op.getResult(0)).isSharded(0))
        op.setAttr(dist::kSeedAttr, builder.getStringAttr("replica"));
    }
  }
};

} // namespace
} // namespace distc

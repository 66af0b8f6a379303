//===- TestBatchFlow.cpp - Shows how the batch flows, for tests -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"

namespace distc {

#define GEN_PASS_DEF_TESTBATCHFLOW
#include "passes/distribute/Passes.h.inc"

namespace {
struct TestBatchFlow : public impl::TestBatchFlowBase<TestBatchFlow> {
  void runOnOperation() override {
    mlir::Builder builder(&getContext());
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      llvm::FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
      if (failed(flow))
        return signalPassFailure();
      for (mlir::Operation &op : graph.getBody().front())
        if (op.getNumResults() > 0)
          op.setAttr("flow", builder.getStringAttr(flow->explain(op.getResult(0))));
    }
  }
};
} // namespace

} // namespace distc

//===- PruneOptimizerOps.cpp - Leaves out updates of other tasks -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/servers/Roles.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTPRUNEOPTIMIZEROPS
#include "passes/distribute/Passes.h.inc"

namespace {
struct DistPruneOptimizerOps : public impl::DistPruneOptimizerOpsBase<DistPruneOptimizerOps> {
  using DistPruneOptimizerOpsBase::DistPruneOptimizerOpsBase;

  void runOnOperation() override {
    if (role != "chief" && role != "worker") {
      getOperation().emitError() << "role=" << role << " is none: updates are pruned for role=chief or role=worker";
      return signalPassFailure();
    }
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(pruneForRole(graph, role == "chief" ? Role::Chief : Role::Worker, sessions)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace distc

//===- CheckEndpoints.cpp - Everything that must run has semantics -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_CHECKENDPOINTS
#include "passes/graph/Passes.h.inc"

namespace {

struct CheckEndpoints : impl::CheckEndpointsBase<CheckEndpoints> {
  using CheckEndpointsBase::CheckEndpointsBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      EndpointNodes nodes(graph);
      bool failedAny = false;
      for (StringAttr name : {graph.getTrainOpAttr(), graph.getInitOpAttr()})
        if (name)
          failedAny |= failed(check(nodes, nodes.findNode(name, "operation"), name));
      SmallVector<StringAttr> tensors;
      if (StringAttr loss = graph.getLossAttr())
        tensors.push_back(loss);
      if (ArrayAttr fetches = graph.getFetchesAttr())
        llvm::append_range(tensors, fetches.getAsRange<StringAttr>());
      for (StringAttr name : tensors) {
        Value tensor = nodes.findTensor(name);
        failedAny |= failed(check(nodes, tensor ? tensor.getDefiningOp() : nullptr, name));
      }
      if (failedAny || failed(nodes.reportMissingCode()))
        return signalPassFailure();
    }
  }

  LogicalResult check(EndpointNodes &nodes, Operation *endpoint, StringRef name) {
    if (!endpoint)
      return failure();
    FailureOr<DenseSet<Operation *>> needed = nodes.collect({endpoint});
    if (failed(needed))
      return failure();
    if (code)
      nodes.noteMissingCode(*needed, name);
    return success();
  }
};

} // namespace
} // namespace distc

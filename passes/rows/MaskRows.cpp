//===- MaskRows.cpp - Rows that data choose stay in place, with a mask -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/EndpointNodes.h"
#include "passes/rows/MaskedRows.h"
#include "passes/rows/Passes.h"

using namespace mlir;

namespace distc::rows {

#define GEN_PASS_DEF_MASKROWS
#include "passes/rows/Passes.h.inc"

namespace {

struct MaskRows : public impl::MaskRowsBase<MaskRows> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      EndpointNodes nodes(graph);
      SmallVector<Operation *> endpoints;
      for (Operation &op : graph.getBody().front())
        if (isEndpoint(graph, &op))
          endpoints.push_back(&op);
      FailureOr<DenseSet<Operation *>> needed = nodes.collect(endpoints);
      if (failed(needed))
        return signalPassFailure();
      if (llvm::none_of(*needed, choosesRows))
        continue;
      if (failed(RowMasker(graph, *needed).run()))
        return signalPassFailure();
    }
  }

  /// That one is not there, dfg-check-endpoints says.
  static bool isEndpoint(dfg::GraphOp graph, Operation *op) {
    StringRef name = dfg::getNodeName(op);
    auto means = [&](Attribute endpoint) {
      auto text = llvm::dyn_cast_or_null<StringAttr>(endpoint);
      return text && text.getValue().split(':').first == name;
    };
    ArrayAttr fetches = graph.getFetchesAttr();
    return means(graph.getTrainOpAttr()) || means(graph.getInitOpAttr()) || means(graph.getLossAttr()) ||
           (fetches && llvm::any_of(fetches, means));
  }
};

} // namespace
} // namespace distc::rows

//===- ExpandControlFlow.cpp - Conditions, loops and lists become straight-line code --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "passes/graph/control_flow/StraightLine.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_EXPANDCONTROLFLOW
#include "passes/graph/Passes.h.inc"

namespace {

struct ExpandControlFlow : impl::ExpandControlFlowBase<ExpandControlFlow> {
  using ExpandControlFlowBase::ExpandControlFlowBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(expand(graph)))
        return signalPassFailure();
  }

  LogicalResult expand(dfg::GraphOp graph) {
    EndpointNodes nodes(graph);
    // Where a graph is exported, initializers keep their conditions: they read a variable only if it has a value.
    FailureOr<DenseSet<Operation *>> needed = nodes.collect(nodes.findEndpoints(/*initializes=*/!keepsOrder));
    if (failed(needed))
      return failure();
    if (llvm::none_of(graph.getBody().front(),
                      [&](Operation &op) { return needed->contains(&op) && StraightLine::isControlFlow(&op); }))
      return success();
    dfg::ShapeContext shapes;
    shapes.setReplicas(dist::getReplicas(getOperation()));
    fixFeeds(graph);
    return StraightLine(graph, *needed, shapes, keepsOrder).run();
  }

  /// Sizes that the user fixes bound loops. The first of a batched feed is the batch.
  void fixFeeds(dfg::GraphOp graph) {
    for (StringRef feed : feeds) {
      auto [name, shape] = feed.split('=');
      name.consume_back(":0");
      SmallVector<StringRef> parts;
      shape.split(parts, 'x', -1, /*KeepEmpty=*/false);
      for (auto placeholder : graph.getBody().front().getOps<dfg::PlaceholderOp>()) {
        auto type = llvm::dyn_cast<TensorType>(placeholder.getResult().getType());
        if (dfg::getNodeName(placeholder) != name || !type ||
            (type.hasRank() && type.getRank() != static_cast<int64_t>(parts.size())))
          continue;
        SmallVector<int64_t> sizes;
        for (auto [axis, part] : llvm::enumerate(parts)) {
          int64_t size = ShapedType::kDynamic;
          bool isBatch = axis == 0 && (!type.hasRank() || type.isDynamicDim(0));
          if (!isBatch && part.getAsInteger(10, size))
            size = ShapedType::kDynamic;
          sizes.push_back(type.hasRank() && !type.isDynamicDim(axis) ? type.getDimSize(axis) : size);
        }
        placeholder.getResult().setType(RankedTensorType::get(sizes, type.getElementType()));
      }
    }
  }
};

} // namespace
} // namespace distc

//===- CheckShares.cpp - The step's shapes fit a replica's share -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/ShapeContext.h"
#include "dialects/dist/Dist.h"
#include "passes/distribute/Passes.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTCHECKSHARES
#include "passes/distribute/Passes.h.inc"

namespace {

/// Of the shapes of two operands, which TensorFlow refuses when its kernel runs. An executable does not run it.
LogicalResult checkGradientSizes(dfg::BroadcastGradientArgsOp op, const dfg::ShapeContext &shapes) {
  auto x = shapes.getConstants(op->getOperand(0)), y = shapes.getConstants(op->getOperand(1));
  if (!x || !y)
    return success();
  for (auto [sizeX, sizeY] : llvm::zip(llvm::reverse(*x), llvm::reverse(*y)))
    if (sizeX != sizeY && sizeX != 1 && sizeY != 1)
      return op->emitOpError() << "operands have " << sizeX << " and " << sizeY << " rows";
  return success();
}

/// Whether all that is open in what a step is fed is the batch.
bool areFeedsKnown(Block &block, const strategies::StepNodes &step) {
  return llvm::all_of(block.getOps<dfg::PlaceholderOp>(), [&](dfg::PlaceholderOp placeholder) {
    auto type = llvm::dyn_cast<RankedTensorType>(placeholder.getResult().getType());
    auto share = placeholder->getAttrOfType<StringAttr>(dist::kFeedAttr);
    return !step.contains(placeholder) ||
           (type && (type.hasStaticShape() || (share && share.getValue() == dist::kSharded)));
  });
}

struct DistCheckShares : public impl::DistCheckSharesBase<DistCheckShares> {
  using DistCheckSharesBase::DistCheckSharesBase;

  void runOnOperation() override {
    replicas = dist::getReplicas(getOperation());
    if (batch == 0 || replicas < 2)
      return;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(check(graph)))
        return signalPassFailure();
  }

private:
  LogicalResult check(dfg::GraphOp graph) {
    Block &block = graph.getBody().front();
    strategies::StepNodes step(graph);
    if (!step.isKnown() || !areFeedsKnown(block, step))
      return success();
    std::optional<std::pair<Location, std::string>> found;
    {
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !found)
          found.emplace(diagnostic.getLocation(), diagnostic.str());
        return success();
      });
      if (succeeded(inferShapes(block, step)))
        return success();
    }
    // The node is named by its location.
    llvm::StringRef reason = found->second;
    if (reason.starts_with("'"))
      reason = reason.substr(reason.find(" op ") + 4);
    return emitError(found->first) << reason << " where a replica is fed " << batch / replicas << " of the batch's "
                                   << static_cast<int64_t>(batch)
                                   << " examples: the graph has the batch's size as a number; take sizes from what is "
                                      "fed (tf.shape), or compile an executable";
  }

  LogicalResult inferShapes(Block &block, const strategies::StepNodes &step) {
    dfg::ShapeContext shapes(batch / replicas / dfg::getBatchMultiple(getOperation()));
    shapes.setReplicas(replicas);
    for (Operation &op : block) {
      if (!step.contains(&op))
        continue;
      auto gradient = llvm::dyn_cast<dfg::BroadcastGradientArgsOp>(op);
      if (failed(shapes.run(&op)) || (gradient && failed(checkGradientSizes(gradient, shapes))))
        return failure();
    }
    return success();
  }

  int64_t replicas = 1;
};

} // namespace
} // namespace distc

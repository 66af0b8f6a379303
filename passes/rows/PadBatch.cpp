//===- PadBatch.cpp - A batch of which the last rows may not be there --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/AttachedAttributes.h"
#include "mlir/IR/Builders.h"
#include "passes/rows/Passes.h"

using namespace mlir;

namespace distc::rows {

#define GEN_PASS_DEF_PADBATCH
#include "passes/rows/Passes.h.inc"

namespace {

/// In the graph's names there is no such scope.
constexpr llvm::StringLiteral kValidRows = "distc/valid_rows";

struct PadBatch : public impl::PadBatchBase<PadBatch> {
  using PadBatchBase::PadBatchBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(pad(graph)))
        return signalPassFailure();
  }

  LogicalResult pad(dfg::GraphOp graph) {
    SmallVector<dfg::PlaceholderOp> batched;
    for (auto placeholder : graph.getBody().getOps<dfg::PlaceholderOp>()) {
      auto type = llvm::dyn_cast<RankedTensorType>(placeholder.getResult().getType());
      if (type && type.getRank() > 0 && type.isDynamicDim(0) && !hasShape(placeholder) && !placeholder->use_empty())
        batched.push_back(placeholder);
    }
    if (batched.empty())
      return graph.emitError("--pad-batch: no placeholder has a batch of open size, so that no example can be left out "
                             "of one; leave the flag out, or leave the placeholders' first size open (None)");
    OpBuilder builder = OpBuilder::atBlockBegin(&graph.getBody().front());
    auto locate = [&](const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); };
    const int64_t open[] = {ShapedType::kDynamic}, unknown[] = {-1};
    auto valid =
        dfg::PlaceholderOp::create(builder, locate(kValidRows), RankedTensorType::get(open, builder.getI1Type()),
                                   dfg::TensorShapeAttr::get(builder.getContext(), /*unknownRank=*/false, unknown));
    valid->setDiscardableAttr(dfg::kValidityAttr, builder.getUnitAttr());
    const int64_t coordinates[] = {ShapedType::kDynamic, 1};
    auto where = dfg::OpaqueOp::create(builder, locate(kValidRows + "/where"),
                                       TypeRange(RankedTensorType::get(coordinates, builder.getI64Type())), "Where",
                                       valid.getResult(), /*stateless=*/true);
    for (dfg::PlaceholderOp placeholder : batched) {
      // Behind it and behind what says which rows are there.
      builder.setInsertionPointAfter(placeholder->isBeforeInBlock(where) ? where.getOperation()
                                                                         : placeholder.getOperation());
      auto rows =
          dfg::GatherNdOp::create(builder, locate(dfg::getNodeName(placeholder) + "/valid_rows"),
                                  placeholder.getResult().getType(), placeholder.getResult(), where->getResult(0));
      placeholder.getResult().replaceAllUsesExcept(rows->getResult(0), rows);
    }
    return success();
  }

  /// Whether the command line gives it a shape, which no batch then has.
  bool hasShape(dfg::PlaceholderOp placeholder) const {
    return llvm::any_of(feeds, [&](StringRef feed) { return feed.split('=').first == dfg::getNodeName(placeholder); });
  }
};

} // namespace
} // namespace distc::rows

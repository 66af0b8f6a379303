//===- Fold.cpp - Shape arithmetic to constants, and dead code ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_FOLD
#include "passes/graph/Passes.h.inc"

namespace {

/// Whether `type` is that of small integers that shapes are made of.
IntegerType getFoldedType(TensorType type) {
  auto element = llvm::dyn_cast<IntegerType>(type.getElementType());
  return element && !element.isUnsigned() && element.getWidth() >= 32 ? element : IntegerType();
}

struct Fold : impl::FoldBase<Fold> {
  using FoldBase::FoldBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<dfg::FuncOp>())
      if (failed(fold(function.getBody().front(), function->hasAttr(dfg::kEntryAttr))))
        return signalPassFailure();
    if (graph)
      for (auto whole : getOperation().getOps<dfg::GraphOp>())
        if (failed(fold(whole.getBody().front(), /*isEntry=*/false)))
          return signalPassFailure();
  }

  LogicalResult fold(Block &block, bool isEntry) {
    dfg::ShapeContext context;
    if (isEntry)
      context.useBounds();
    context.setReplicas(dist::getReplicas(getOperation()));
    if (failed(context.run(block)))
      return failure();
    foldNodes(block, context);
    return success();
  }

  void foldNodes(Block &block, dfg::ShapeContext &context) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (llvm::isa<dfg::ConstOp>(op) || !isMemoryEffectFree(&op))
        continue;
      for (Region &region : op.getRegions())
        for (Block &inner : region) {
          // What is known and the same in all iterations.
          for (Value argument : inner.getArguments())
            replaceKnown(context, OpBuilder::atBlockBegin(&inner), op.getLoc(), argument);
          foldNodes(inner, context);
        }
      for (Value result : op.getResults())
        if (!result.use_empty())
          replaceKnown(context, OpBuilder(&op), op.getLoc(), result);
      bypassIdentity(op);
    }
    // What is left of a chain goes from its end.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }

  void replaceKnown(dfg::ShapeContext &context, OpBuilder builder, Location loc, Value result) {
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape())
      return;
    IntegerType element = getFoldedType(type);
    std::optional<SmallVector<int64_t>> elements = context.getConstants(result);
    if (!element || !elements || static_cast<int64_t>(elements->size()) != type.getNumElements())
      return;
    SmallVector<APInt> values;
    for (int64_t value : *elements)
      values.emplace_back(element.getWidth(), value, /*isSigned=*/true, /*implicitTrunc=*/true);
    auto constant = dfg::ConstOp::create(builder, loc, type, DenseElementsAttr::get(type, values));
    result.replaceUsesWithIf(constant.getResult(),
                             [](OpOperand &use) { return !llvm::isa<dfg::YieldOp>(use.getOwner()); });
  }

  /// An identity gives way to its operand, unless it runs something that nothing else would.
  void bypassIdentity(Operation &op) {
    if (!op.hasTrait<dfg::Forwards>())
      return;
    Value operand = op.getOperand(0), result = op.getResult(0);
    if (operand.getType() == result.getType())
      result.replaceAllUsesWith(operand);
  }
};

} // namespace
} // namespace distc

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
      if (failed(fold(function.getBody().front(), function->hasAttr("dfg.entry"))))
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
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (llvm::isa<dfg::ConstOp>(op) || !isMemoryEffectFree(&op))
        continue;
      for (Value result : op.getResults())
        if (!result.use_empty())
          replaceKnown(context, op, result);
      bypassIdentity(op);
    }
    // What is left of a chain goes from its end.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
    return success();
  }

  void replaceKnown(dfg::ShapeContext &context, Operation &op, Value result) {
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
    OpBuilder builder(&op);
    auto constant = dfg::ConstOp::create(builder, op.getLoc(), type, DenseElementsAttr::get(type, values));
    result.replaceAllUsesWith(constant.getResult());
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

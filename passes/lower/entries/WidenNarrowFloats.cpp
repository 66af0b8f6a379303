//===- WidenNarrowFloats.cpp - float16 and bfloat16 are computed in float32 ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/Passes.h"
#include "passes/lower/entries/EntryLowering.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_WIDENNARROWFLOATS
#include "passes/lower/Passes.h.inc"

namespace {

bool isNarrow(Value value) { return lower::isNarrowFloat(value.getType()); }

/// Whether the operation computes; others move bits, or are the casts themselves.
bool computes(Operation *op) {
  if (llvm::isa<arith::ExtFOp, arith::TruncFOp, arith::SelectOp, arith::BitcastOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return llvm::isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || llvm::isa<dfg::SpecialFunctionOp>(op);
}

void widen(Operation *op) {
  OpBuilder builder(op);
  Type wide = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get()))
      operand.set(arith::ExtFOp::create(builder, op->getLoc(), wide, operand.get()));
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults())
    if (Type narrow = result.getType(); lower::isNarrowFloat(narrow)) {
      result.setType(wide);
      auto rounded = arith::TruncFOp::create(builder, op->getLoc(), narrow, result);
      result.replaceAllUsesExcept(rounded, rounded);
    }
}

struct WidenNarrowFloats : impl::WidenNarrowFloatsBase<WidenNarrowFloats> {
  void runOnOperation() override {
    SmallVector<Operation *> computing;
    bool casts = false;
    getOperation()->walk([&](Operation *op) {
      if (!llvm::any_of(op->getOperands(), isNarrow) && !llvm::any_of(op->getResults(), isNarrow))
        return;
      casts = true;
      if (computes(op))
        computing.push_back(op);
    });
    for (Operation *op : computing)
      widen(op);
    if (!casts)
      return;
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc

//===- FuseElementwise.cpp - Chains of element-wise work become one kernel ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/lower/Passes.h.inc"

namespace {

/// Work that costs less than reading its result from memory again: it may be done once for each of several users.
bool isCheap(linalg::GenericOp generic) {
  if (generic.getNumDpsInputs() > 1)
    return false;
  return llvm::all_of(generic.getRegion().front().without_terminator(), [](Operation &op) {
    return op.hasTrait<OpTrait::ConstantLike>() || llvm::isa<linalg::IndexOp, arith::IndexCastOp, arith::ExtFOp, arith::ExtUIOp, arith::UIToFPOp>(op);
  });
}

/// Whether nothing remains of the producer's result once it is fused into the user: the producer does not start from what
/// its result holds, and the fused operation's other operands have all its loops. A result that remains would be
/// written, and read, at each iteration of the user's reductions, for nobody.
bool disappears(linalg::GenericOp producer, OpOperand *use) {
  OpOperand *result = producer.getDpsInitOperand(llvm::cast<OpResult>(use->get()).getResultNumber());
  auto user = llvm::dyn_cast<linalg::GenericOp>(use->getOwner());
  if (!user || producer.payloadUsesValueFromOperand(result))
    return false;
  AffineMap written = inversePermutation(producer.getMatchingIndexingMap(result));
  if (!written)
    return false;
  AffineMap toProducer = written.compose(user.getMatchingIndexingMap(use));
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : user->getOpOperands())
    if (&operand != use)
      maps.push_back(user.getMatchingIndexingMap(&operand));
  for (OpOperand *operand : producer.getDpsInputOperands())
    maps.push_back(producer.getMatchingIndexingMap(operand).compose(toProducer));
  return static_cast<bool>(inversePermutation(concatAffineMaps(maps, producer.getContext())));
}

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(drt::kEntryAttr))
      return;
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *use) {
      auto producer = use->get().getDefiningOp<linalg::GenericOp>();
      if (!producer || !disappears(producer, use))
        return false;
      return use->get().hasOneUse() || isCheap(producer);
    });
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal();
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc

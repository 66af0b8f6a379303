//===- ExpandAroundTransposes.cpp - drt-expand-around-transposes ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/FusionPlan.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_EXPANDAROUNDTRANSPOSES
#include "passes/lower/Passes.h.inc"

namespace {

/// Whether the operation reads the operand in another order of its axes than it writes.
bool transposes(OpOperand &operand) {
  auto op = llvm::dyn_cast<linalg::GenericOp>(operand.getOwner());
  if (!op || !isElementwise(op) || !op.isDpsInput(&operand) || op.getNumDpsInits() != 1)
    return false;
  AffineMap read = op.getMatchingIndexingMap(&operand);
  return read.isPermutation() && read != op.getMatchingIndexingMap(op.getDpsInitOperand(0));
}

/// Whether what the collapsed tensor comes of, element by element, is a transposition.
bool isOfTranspose(Value tensor) {
  auto producer = tensor.getDefiningOp<linalg::GenericOp>();
  if (!producer || producer.getNumDpsInputs() != 1 || !isElementwise(producer))
    return false;
  OpOperand &input = *producer.getDpsInputOperand(0);
  return transposes(input) || isOfTranspose(input.get());
}

/// Whether the operand is transposed, or what is made of it, element by element.
bool leadsToTranspose(OpOperand &operand) {
  if (transposes(operand))
    return true;
  auto op = llvm::dyn_cast<linalg::GenericOp>(operand.getOwner());
  return op && op.isDpsInput(&operand) && isElementwise(op) && op->getNumResults() == 1 && op->hasOneUse() &&
         leadsToTranspose(*op->use_begin());
}

/// Asked with the operand that reads the reshape, of an operation behind it, or that the reshape reads, of one before
/// it.
bool isBesideTranspose(OpOperand *operand) {
  if (auto expand = llvm::dyn_cast<tensor::ExpandShapeOp>(operand->getOwner())) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    return producer && isElementwise(producer) && producer.getNumDpsInits() == 1 &&
           llvm::all_of(expand->getUses(), leadsToTranspose);
  }
  auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  return collapse && isOfTranspose(collapse.getSrc());
}

struct ExpandAroundTransposes : impl::ExpandAroundTransposesBase<ExpandAroundTransposes> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, isBesideTranspose);
    // What a sum starts from is a fill again, not a fill in another shape.
    linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc

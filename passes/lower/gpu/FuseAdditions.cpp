//===- FuseAdditions.cpp - drt-fuse-additions ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/Casts.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/kernels/Sums.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEADDITIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// A matmul that only the sum reads, through one reshape at most.
struct Term {
  drt::MatmulOp matmul;
  Operation *reshape = nullptr;
};

std::optional<Term> matchTerm(Value value) {
  Term term;
  if (!value.hasOneUse())
    return std::nullopt;
  if (isReshape(value.getDefiningOp())) {
    term.reshape = value.getDefiningOp();
    value = term.reshape->getOperand(0);
  }
  term.matmul = value.getDefiningOp<drt::MatmulOp>();
  if (!term.matmul || !value.hasOneUse() || term.matmul.getEpilogue() || term.matmul.getJoined())
    return std::nullopt;
  const Type element = cast<RankedTensorType>(value.getType()).getElementType();
  if (!element.isF32() && !element.isF64())
    return std::nullopt;
  return term;
}

/// Whether the value is in memory anyway: element-wise operations with one reader are part of that otherwise, and what
/// is widened is where it is read, from half as many bytes.
bool isInMemory(Value value) {
  while (isReshape(value.getDefiningOp()) && value.hasOneUse())
    value = value.getDefiningOp()->getOperand(0);
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return !generic || !isElementwise(generic) || (!value.hasOneUse() && !getCast<arith::ExtFOp>(generic));
}

/// `value`, of the shape that `reshape` makes, in the shape that it takes.
Value reshapeBack(OpBuilder &builder, Operation *reshape, Value value) {
  Type type = reshape->getOperand(0).getType();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(reshape))
    return builder.createOrFold<tensor::CollapseShapeOp>(reshape->getLoc(), type, value,
                                                         expand.getReassociationIndices());
  return builder.createOrFold<tensor::ExpandShapeOp>(reshape->getLoc(), type, value,
                                                     cast<tensor::CollapseShapeOp>(reshape).getReassociationIndices());
}

struct FuseAdditions : impl::FuseAdditionsBase<FuseAdditions> {
  void runOnOperation() override {
    for (linalg::GenericOp sum : getWholeSums(getOperation().getBody().front()))
      fuse(sum);
  }

private:
  static void fuse(linalg::GenericOp root) {
    const SumTerms all(root);
    SmallVector<Term> matmuls;
    SmallVector<Value> rest;
    for (Value value : all.terms)
      if (std::optional<Term> term = matchTerm(value))
        matmuls.push_back(*term);
      else
        rest.push_back(value);
    // Matmuls alone are added up, and that to the matmuls' sum by what reads it, instead of written for them.
    Value behind;
    if (rest.size() == 1 && !isInMemory(rest.front()))
      behind = rest.pop_back_val();
    // What the first one is added to: one of its like, where there is nothing else.
    if (matmuls.size() + !rest.empty() < 2)
      return;
    OpBuilder builder(root);
    Value sum;
    for (Value term : rest)
      sum = sum ? createSum(builder, root.getLoc(), sum, term) : term;
    ArrayRef<Term> added = matmuls;
    if (!sum) {
      Value first = matmuls.front().matmul.getResult();
      sum = matmuls.front().reshape ? matmuls.front().reshape->getResult(0) : first;
      added = added.drop_front();
    }
    for (const Term &term : added)
      sum = add(builder, root, term, sum);
    if (behind)
      sum = createSum(builder, root.getLoc(), sum, behind);
    root.getResult(0).replaceAllUsesWith(sum);
    for (linalg::GenericOp op : all.sums)
      op->erase();
    for (const Term &term : added) {
      if (term.reshape)
        term.reshape->erase();
      drt::MatmulOp(term.matmul).erase();
    }
  }

  static Value add(OpBuilder &builder, linalg::GenericOp root, const Term &term, Value addend) {
    drt::MatmulOp matmul = term.matmul;
    if (term.reshape)
      addend = reshapeBack(builder, term.reshape, addend);
    Location loc = FusedLoc::get(builder.getContext(), {matmul.getLoc(), root.getLoc()});
    Value sum = drt::MatmulAddOp::create(builder, loc, matmul.getType(), matmul.getA(), matmul.getB(), addend,
                                         matmul.getBias(), matmul.getTransposeAAttr(), matmul.getTransposeBAttr(),
                                         DenseI64ArrayAttr(), matmul.getPrecisionAttr());
    if (!term.reshape)
      return sum;
    Operation *reshape = builder.clone(*term.reshape);
    reshape->setOperand(0, sum);
    return reshape->getResult(0);
  }
};

} // namespace
} // namespace distc

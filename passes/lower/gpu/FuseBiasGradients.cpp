//===- FuseBiasGradients.cpp - drt-fuse-bias-gradients -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/Casts.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEBIASGRADIENTS
#include "passes/lower/Passes.h.inc"

namespace {

/// What holds the elements, in this order, before they were widened and reshaped.
Value getNarrowSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isReshape(op)) {
      value = op->getOperand(0);
      continue;
    }
    Value narrow = getCast<arith::ExtFOp>(op);
    if (!narrow)
      break;
    value = narrow;
  }
  return value;
}

/// Whether the operation adds up, from zero, the columns of its only operand: all axes but the last ones, which stay in
/// their order.
bool sumsColumns(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 || op.getNumReductionLoops() == 0 ||
      !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity())
    return false;
  const unsigned loops = op.getNumLoops(), summed = op.getNumReductionLoops();
  const auto kept = AffineMap::getMultiDimIdentityMap(loops, op.getContext()).getMinorSubMap(loops - summed);
  if (op.getMatchingIndexingMap(op.getDpsInitOperand(0)) != kept)
    return false;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto step = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || !step)
    return false;
  const Value in = op.getBody()->getArgument(0), out = op.getBody()->getArgument(1);
  return (step.getLhs() == in && step.getRhs() == out) || (step.getLhs() == out && step.getRhs() == in);
}

/// A product x^T g of narrow elements, without any epilogue.
bool isMatrixGradient(drt::MatmulOp product) {
  auto type = cast<RankedTensorType>(product.getType());
  return type.getRank() == 2 && type.getElementType().isF32() && type.getNumElements() > 0 &&
         countElements(product.getA()) > 0 && product.getTransposeA() && !product.getTransposeB() &&
         !product.getBias() && product.getEpilogue() == 0 && !product.getJoined() &&
         cast<RankedTensorType>(product.getB().getType()).getRank() == 2 &&
         !cast<RankedTensorType>(product.getB().getType()).getElementType().isF32();
}

struct FuseBiasGradients : impl::FuseBiasGradientsBase<FuseBiasGradients> {
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    llvm::DenseMap<Value, linalg::GenericOp> sums; // by what is summed
    for (auto generic : block.getOps<linalg::GenericOp>())
      if (sumsColumns(generic))
        sums.try_emplace(getNarrowSource(generic.getInputs()[0]), generic);
    for (auto product : llvm::make_early_inc_range(block.getOps<drt::MatmulOp>())) {
      auto found = sums.find(getNarrowSource(product.getB()));
      if (found == sums.end() || !isMatrixGradient(product))
        continue;
      linalg::GenericOp sum = found->second;
      auto type = cast<RankedTensorType>(sum.getResult(0).getType());
      Operation *place = getPlace(product, sum);
      if (!place || !type.getElementType().isF32() ||
          type.getNumElements() != cast<RankedTensorType>(product.getType()).getDimSize(1))
        continue;
      fuse(product, sum, place);
      sums.erase(found);
    }
  }

  /// In front of what both can be made: the first of them, or the product where the sum's readers are all behind it.
  /// Null where neither is.
  static Operation *getPlace(drt::MatmulOp product, linalg::GenericOp sum) {
    if (product->isBeforeInBlock(sum))
      return product;
    Block &block = *product->getBlock();
    auto isBefore = [&](Value operand) {
      return !operand.getDefiningOp() || operand.getDefiningOp()->isBeforeInBlock(sum);
    };
    if (llvm::all_of(product.getOperands(), isBefore))
      return sum;
    const bool isReadLater = llvm::all_of(
        sum->getUsers(), [&](Operation *user) { return product->isBeforeInBlock(block.findAncestorOpInBlock(*user)); });
    return isReadLater ? product.getOperation() : nullptr;
  }

  static void fuse(drt::MatmulOp product, linalg::GenericOp sum, Operation *place) {
    ImplicitLocOpBuilder b(getLocation(product, sum), place);
    auto type = cast<RankedTensorType>(sum.getResult(0).getType());
    auto line = RankedTensorType::get({type.getNumElements()}, type.getElementType());
    auto made =
        drt::MatmulBiasGradOp::create(b, product.getType(), line, product.getA(), product.getB(), DenseI64ArrayAttr());
    Value bias = made.getBiasGrad();
    if (type.getRank() > 1)
      bias = tensor::ExpandShapeOp::create(
          b, type, bias, ArrayRef{ReassociationIndices(llvm::to_vector(llvm::seq<int64_t>(type.getRank())))});
    else if (type.getRank() == 0)
      bias = tensor::CollapseShapeOp::create(b, type, bias, ArrayRef<ReassociationIndices>{});
    sum.getResult(0).replaceAllUsesWith(bias);
    product.getResult().replaceAllUsesWith(made.getResult());
    product.erase();
    sum.erase();
  }

  static Location getLocation(drt::MatmulOp product, linalg::GenericOp sum) {
    return FusedLoc::get(product.getContext(), {product.getLoc(), sum.getLoc()});
  }
};

} // namespace
} // namespace distc

//===- PointwiseConvolutions.cpp - Convolutions whose windows have one element are products --===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_POINTWISECONVOLUTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// Whether each pixel of the result is made of the pixel at its place, and of all of its channels. The numbers are
/// those of drt.conv2d: n h w c kh kw k oh ow stride_h stride_w dilation_h dilation_w pads groups.
bool isPointwise(ArrayRef<int64_t> numbers) {
  return llvm::all_of(numbers.slice(4, 2), [](int64_t size) { return size == 1; }) &&
         llvm::all_of(numbers.slice(9, 2), [](int64_t stride) { return stride == 1; }) &&
         llvm::all_of(numbers.slice(13, 4), [](int64_t padding) { return padding == 0; }) && numbers[17] == 1;
}

/// All axes but the last are one: pixels of images, and of a filter its only one and the input's channels.
const SmallVector<ReassociationIndices> kMatrix = {{0, 1, 2}, {3}};

struct PointwiseConvolutions : impl::PointwiseConvolutionsBase<PointwiseConvolutions> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      auto numbers = op->getAttrOfType<DenseI64ArrayAttr>("descriptor");
      if (!llvm::isa<drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp>(op) ||
          op->hasAttr("filter_layout") || !isPointwise(numbers) ||
          !llvm::cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32())
        return;
      OpBuilder builder(op);
      const bool ofInput = llvm::isa<drt::Conv2DGradInputOp>(op), ofFilter = llvm::isa<drt::Conv2DGradFilterOp>(op);
      auto forward = llvm::dyn_cast<drt::Conv2DOp>(op);
      // The gradient of the input is first the filter's operand.
      Value a = matrix(builder, op->getOperand(ofInput ? 1 : 0)), b = matrix(builder, op->getOperand(ofInput ? 0 : 1));
      auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
      auto flat = RankedTensorType::get({type.getNumElements() / type.getDimSize(3), type.getDimSize(3)},
                                        type.getElementType());
      const UnitAttr unit = builder.getUnitAttr();
      Value product = drt::MatmulOp::create(builder, op->getLoc(), flat, a, b, forward ? forward.getBias() : Value(),
                                            ofFilter ? unit : UnitAttr(), ofInput ? unit : UnitAttr(),
                                            builder.getI32IntegerAttr(forward ? forward.getEpilogue() : 0),
                                            /*joined=*/UnitAttr(), DenseI64ArrayAttr());
      op->getResult(0).replaceAllUsesWith(tensor::ExpandShapeOp::create(builder, op->getLoc(), type, product, kMatrix));
      op->erase();
    });
  }

private:
  static Value matrix(OpBuilder &builder, Value tensor) {
    return tensor::CollapseShapeOp::create(builder, tensor.getLoc(), tensor, kMatrix);
  }
};

} // namespace
} // namespace distc

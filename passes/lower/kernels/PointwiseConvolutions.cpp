//===- PointwiseConvolutions.cpp - Convolutions whose windows have one element are products --===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_POINTWISECONVOLUTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// Whether each pixel of the result is made of one pixel of the image, and of all of its channels. The numbers are
/// those of drt.conv2d: n h w c kh kw k oh ow stride_h stride_w dilation_h dilation_w pads groups.
bool isPointwise(ArrayRef<int64_t> numbers) {
  return llvm::all_of(numbers.slice(4, 2), [](int64_t size) { return size == 1; }) &&
         llvm::all_of(numbers.slice(13, 4), [](int64_t padding) { return padding == 0; }) && numbers[17] == 1;
}

/// Which pixels of the image a strided convolution reads: those whose row and column are multiples of its strides.
struct Strides {
  int64_t ofRows, ofColumns;

  explicit Strides(ArrayRef<int64_t> numbers) : ofRows(numbers[9]), ofColumns(numbers[10]) {}
  bool areOne() const { return ofRows == 1 && ofColumns == 1; }

  /// The pixels of `image` that are read, of the size of the convolution's result.
  Value take(OpBuilder &builder, Value image, ArrayRef<int64_t> numbers) const {
    if (areOne())
      return image;
    return makeImage(builder, image.getLoc(), {numbers[0], numbers[7], numbers[8], numbers[3]},
                     [&](OpBuilder &body, Location loc, ArrayRef<Value> at) -> Value {
                       Value row = arith::MulIOp::create(body, loc, at[1], index(body, loc, ofRows));
                       Value column = arith::MulIOp::create(body, loc, at[2], index(body, loc, ofColumns));
                       return tensor::ExtractOp::create(body, loc, image, ValueRange{at[0], row, column, at[3]});
                     });
  }

  /// `pixels` at their places in an image of `shape` that has zeros elsewhere.
  Value put(OpBuilder &builder, Value pixels, ArrayRef<int64_t> shape) const {
    if (areOne())
      return pixels;
    return makeImage(builder, pixels.getLoc(), shape, [&](OpBuilder &body, Location loc, ArrayRef<Value> at) -> Value {
      Value rows = index(body, loc, ofRows), columns = index(body, loc, ofColumns), zero = index(body, loc, 0);
      Value restOfRow = arith::RemUIOp::create(body, loc, at[1], rows);
      Value restOfColumn = arith::RemUIOp::create(body, loc, at[2], columns);
      Value rest = arith::OrIOp::create(body, loc, restOfRow, restOfColumn);
      Value isRead = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, rest, zero);
      Value row = arith::DivUIOp::create(body, loc, at[1], rows);
      Value column = arith::DivUIOp::create(body, loc, at[2], columns);
      // There is a pixel before each that is not read.
      Value pixel = tensor::ExtractOp::create(body, loc, pixels, ValueRange{at[0], row, column, at[3]});
      Value none = arith::ConstantOp::create(body, loc, body.getF32FloatAttr(0));
      return arith::SelectOp::create(body, loc, isRead, pixel, none);
    });
  }

private:
  static Value index(OpBuilder &builder, Location loc, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  /// An image of what `make` makes for each place.
  static Value makeImage(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                         llvm::function_ref<Value(OpBuilder &, Location, ArrayRef<Value>)> make) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, builder.getF32Type());
    const SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
    return linalg::GenericOp::create(builder, loc, empty.getType(), ValueRange(), empty,
                                     builder.getMultiDimIdentityMap(4), loops,
                                     [&](OpBuilder &body, Location at, ValueRange) {
                                       SmallVector<Value> place;
                                       for (int64_t axis = 0; axis < 4; ++axis)
                                         place.push_back(linalg::IndexOp::create(body, at, axis));
                                       linalg::YieldOp::create(body, at, make(body, at, place));
                                     })
        .getResult(0);
  }
};

/// All axes but the last are one: pixels of images, and of a filter its only one and the input's channels.
const SmallVector<ReassociationIndices> kMatrix = {{0, 1, 2}, {3}};
/// Of a filter whose first axis is the output's channels.
const SmallVector<ReassociationIndices> kRows = {{0}, {1, 2, 3}};

struct PointwiseConvolutions : impl::PointwiseConvolutionsBase<PointwiseConvolutions> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, linalg::LinalgDialect, tensor::TensorDialect>();
  }

  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      auto numbers = op->getAttrOfType<DenseI64ArrayAttr>("descriptor");
      if (!llvm::isa<drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp>(op) ||
          drt::getFilterLayout(op) == DRT_FILTER_OHWI || !isPointwise(numbers) ||
          !llvm::cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32())
        return;
      OpBuilder builder(op);
      const bool ofInput = llvm::isa<drt::Conv2DGradInputOp>(op), ofFilter = llvm::isa<drt::Conv2DGradFilterOp>(op);
      auto forward = llvm::dyn_cast<drt::Conv2DOp>(op);
      const Strides strides(numbers);
      // The gradient of the input is first the filter's operand.
      Value image = op->getOperand(ofInput ? 1 : 0);
      // A row of the filter is an output's, or an input's.
      const bool byOutput = drt::getFilterLayout(op) == DRT_FILTER_OIHW;
      const ArrayRef<ReassociationIndices> ofFilterAxes = byOutput ? kRows : kMatrix;
      Value a = matrix(builder, ofInput ? image : strides.take(builder, image, numbers), kMatrix);
      Value b = matrix(builder, op->getOperand(ofInput ? 0 : 1), ofFilter ? ArrayRef(kMatrix) : ofFilterAxes);
      if (ofFilter && byOutput)
        std::swap(a, b);
      auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
      // Of the input's gradient, the pixels that were read.
      auto made = ofInput
                      ? RankedTensorType::get({numbers[0], numbers[7], numbers[8], numbers[3]}, type.getElementType())
                      : type;
      const ArrayRef<ReassociationIndices> axes = ofFilter ? ofFilterAxes : ArrayRef(kMatrix);
      auto flat = tensor::CollapseShapeOp::inferCollapsedType(made, axes);
      const UnitAttr unit = builder.getUnitAttr();
      Value product = drt::MatmulOp::create(builder, op->getLoc(), flat, a, b, forward ? forward.getBias() : Value(),
                                            ofFilter ? unit : UnitAttr(),
                                            (ofInput && !byOutput) || (forward && byOutput) ? unit : UnitAttr(),
                                            builder.getI32IntegerAttr(forward ? forward.getEpilogue() : 0),
                                            /*joined=*/UnitAttr(), DenseI64ArrayAttr(), /*precision=*/StringAttr());
      Value result = tensor::ExpandShapeOp::create(builder, op->getLoc(), made, product, axes);
      op->getResult(0).replaceAllUsesWith(ofInput ? strides.put(builder, result, type.getShape()) : result);
      op->erase();
    });
  }

private:
  static Value matrix(OpBuilder &builder, Value tensor, ArrayRef<ReassociationIndices> axes) {
    return tensor::CollapseShapeOp::create(builder, tensor.getLoc(), tensor, axes);
  }
};

} // namespace
} // namespace distc

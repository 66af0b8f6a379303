//===- ConvolutionsToMatmuls.cpp - Convolutions that are faster as products of matrices --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_CONVOLUTIONSTOMATMULS
#include "passes/lower/Passes.h.inc"

namespace {

/// What drt.conv2d says of a convolution.
struct Convolution {
  int64_t n, h, w, c, kh, kw, k, oh, ow, strideH, strideW, dilationH, dilationW, padTop, padLeft, padBottom, padRight,
      groups;

  explicit Convolution(ArrayRef<int64_t> numbers)
      : n(numbers[0]), h(numbers[1]), w(numbers[2]), c(numbers[3]), kh(numbers[4]), kw(numbers[5]), k(numbers[6]),
        oh(numbers[7]), ow(numbers[8]), strideH(numbers[9]), strideW(numbers[10]), dilationH(numbers[11]),
        dilationW(numbers[12]), padTop(numbers[13]), padLeft(numbers[14]), padBottom(numbers[15]),
        padRight(numbers[16]), groups(numbers[17]) {}

  bool isPadded() const { return padTop || padLeft || padBottom || padRight; }
  /// Each pixel of the result is made of one pixel of the image.
  bool isPointwise() const { return kh == 1 && kw == 1 && !isPadded(); }
  /// And each pixel of the image is one of those.
  bool isProduct() const { return isPointwise() && strideH == 1 && strideW == 1; }
  /// Whether to copy every window is worth it: beside the filter, which a convolution's primitive brings to a layout of
  /// its own and back, on each core, a core's are small.
  bool hasFewWindows(int64_t cores) const { return 2 * n * oh * ow <= k * cores && kh * kw * c * k >= kMinFilter; }

private:
  static constexpr int64_t kMinFilter = 1 << 15;
};

/// The windows of an image, each with its elements behind each other: in the filter's order.
class Windows {
public:
  /// `byOutput`: a channel's elements lie behind each other (OIHW), else an element's channels (HWIO).
  Windows(const Convolution &conv, bool byOutput) : conv(conv), byOutput(byOutput) {}

  /// [n, oh, ow, kh, kw, c], or [n, oh, ow, c, kh, kw].
  SmallVector<int64_t> getShape() const {
    if (byOutput)
      return {conv.n, conv.oh, conv.ow, conv.c, conv.kh, conv.kw};
    return {conv.n, conv.oh, conv.ow, conv.kh, conv.kw, conv.c};
  }

  /// Those of `image`; zeros where they reach beyond it.
  Value take(OpBuilder &builder, Value image) const {
    return make(builder, image.getLoc(), getShape(), [&](Element e) {
      Value inRow = e.at[byOutput ? 4 : 3], inColumn = e.at[byOutput ? 5 : 4], channel = e.at[byOutput ? 3 : 5];
      Value row = e.add(e.mul(e.at[1], conv.strideH), e.mul(inRow, conv.dilationH), -conv.padTop);
      Value column = e.add(e.mul(e.at[2], conv.strideW), e.mul(inColumn, conv.dilationW), -conv.padLeft);
      Value inside = conv.isPadded() ? e.both(e.below(row, conv.h), e.below(column, conv.w)) : Value();
      return e.load(image, {e.at[0], row, column, channel}, inside);
    });
  }

  /// The image in which each element is the sum of what the windows have at its place.
  Value put(OpBuilder &builder, Value windows) const {
    return make(builder, windows.getLoc(), {conv.n, conv.h, conv.w, conv.c}, [&](Element e) {
      Value none = e.zero();
      return e.sum(conv.kh, none, [&](Element ofRow, Value inRow, Value above) {
        auto [y, readsRow] =
            ofRow.divide(ofRow.add(ofRow.at[1], ofRow.mul(inRow, -conv.dilationH), conv.padTop), conv.strideH, conv.oh);
        return ofRow.sum(conv.kw, above, [&, y = y, readsRow = readsRow](Element e, Value inColumn, Value before) {
          auto [x, readsColumn] =
              e.divide(e.add(e.at[2], e.mul(inColumn, -conv.dilationW), conv.padLeft), conv.strideW, conv.ow);
          SmallVector<Value> place = {e.at[0], y, x, inRow, inColumn};
          place.insert(byOutput ? place.begin() + 3 : place.end(), e.at[3]);
          return e.plus(before, e.load(windows, place, e.both(readsRow, readsColumn)));
        });
      });
    });
  }

private:
  /// Where an element is made, and arithmetic on places.
  struct Element {
    OpBuilder &builder;
    Location loc;
    /// Its place, along each axis.
    ArrayRef<Value> at;

    Value number(int64_t value) const { return arith::ConstantIndexOp::create(builder, loc, value); }
    Value zero() const { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0)); }
    Value plus(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
    Value mul(Value place, int64_t by) const {
      return by == 1 ? place : Value(arith::MulIOp::create(builder, loc, place, number(by)));
    }
    Value add(Value a, Value b, int64_t offset) const {
      Value sum = arith::AddIOp::create(builder, loc, a, b);
      return offset == 0 ? sum : Value(arith::AddIOp::create(builder, loc, sum, number(offset)));
    }
    Value both(Value a, Value b) const { return arith::AndIOp::create(builder, loc, a, b); }
    /// Not negative, and below `size`: without a sign, what lies below zero is large.
    Value below(Value place, int64_t size) const {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, place, number(size));
    }
    /// place / by, and whether that is a whole number from 0 on below `size`.
    std::pair<Value, Value> divide(Value place, int64_t by, int64_t size) const {
      Value inside = below(place, size * by);
      if (by == 1)
        return {place, inside};
      Value rest = arith::RemUIOp::create(builder, loc, place, number(by));
      Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, number(0));
      return {arith::DivUIOp::create(builder, loc, place, number(by)), both(inside, isWhole)};
    }
    /// 0 where not `inside`; a null condition always holds.
    Value load(Value tensor, ArrayRef<Value> place, Value inside) const {
      if (!inside)
        return tensor::ExtractOp::create(builder, loc, tensor, place);
      auto yield = [](OpBuilder &b, Location loc, Value value) { scf::YieldOp::create(b, loc, value); };
      return scf::IfOp::create(
                 builder, loc, inside,
                 [&](OpBuilder &b, Location loc) { yield(b, loc, Element{b, loc, at}.load(tensor, place, {})); },
                 [&](OpBuilder &b, Location loc) { yield(b, loc, Element{b, loc, at}.zero()); })
          .getResult(0);
    }
    /// `make(element, i, sum)` for i from 0 on below `count`, each on the sum before it.
    Value sum(int64_t count, Value first, llvm::function_ref<Value(Element, Value, Value)> make) const {
      if (count == 1)
        return make(*this, number(0), first);
      return scf::ForOp::create(builder, loc, number(0), number(count), number(1), first,
                                [&](OpBuilder &b, Location loc, Value i, ValueRange sum) {
                                  scf::YieldOp::create(b, loc, make({b, loc, at}, i, sum.front()));
                                })
          .getResult(0);
    }
  };

  static Value make(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                    llvm::function_ref<Value(Element)> element) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, builder.getF32Type());
    const SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
    return linalg::GenericOp::create(builder, loc, empty.getType(), ValueRange(), empty,
                                     builder.getMultiDimIdentityMap(shape.size()), loops,
                                     [&](OpBuilder &b, Location loc, ValueRange) {
                                       SmallVector<Value> at;
                                       for (size_t axis = 0; axis < shape.size(); ++axis)
                                         at.push_back(linalg::IndexOp::create(b, loc, axis));
                                       linalg::YieldOp::create(b, loc, element({b, loc, at}));
                                     })
        .getResult(0);
  }

  const Convolution &conv;
  bool byOutput;
};

/// All axes but the last are one: pixels of images, and of a filter HWIO its rows, columns and the input's channels.
const SmallVector<ReassociationIndices> kMatrix = {{0, 1, 2}, {3}};
/// Of a filter whose first axis is the output's channels.
const SmallVector<ReassociationIndices> kRows = {{0}, {1, 2, 3}};
/// Windows, and their elements.
const SmallVector<ReassociationIndices> kWindows = {{0, 1, 2}, {3, 4, 5}};

struct ConvolutionsToMatmuls : impl::ConvolutionsToMatmulsBase<ConvolutionsToMatmuls> {
  void runOnOperation() override {
    SmallVector<Operation *> convolutions;
    const int64_t cores = drt::getCores(getOperation()->getParentOfType<ModuleOp>());
    getOperation().walk([&](Operation *op) {
      if (!op->hasTrait<drt::Convolves>() || drt::getFilterLayout(op) == DRT_FILTER_OHWI ||
          !llvm::cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32())
        return;
      const Convolution conv(op->getAttrOfType<DenseI64ArrayAttr>("descriptor"));
      if (conv.groups == 1 && (conv.isPointwise() || conv.hasFewWindows(cores)))
        convolutions.push_back(op);
    });
    for (Operation *op : convolutions)
      replace(op, Convolution(op->getAttrOfType<DenseI64ArrayAttr>("descriptor")));
  }

private:
  static void replace(Operation *op, const Convolution &conv) {
    OpBuilder builder(op);
    // A row of the filter is an output's, or an input's.
    const bool byOutput = drt::getFilterLayout(op) == DRT_FILTER_OIHW;
    const Windows windows(conv, byOutput);
    const ArrayRef<ReassociationIndices> filterAxes = byOutput ? kRows : kMatrix;
    auto takeWindows = [&](Value image) {
      return conv.isProduct() ? flatten(builder, image, kMatrix)
                              : flatten(builder, windows.take(builder, image), kWindows);
    };
    Value result;
    if (auto forward = llvm::dyn_cast<drt::Conv2DOp>(op)) {
      Value product = multiply(builder, op->getLoc(), takeWindows(forward.getInput()), false,
                               flatten(builder, forward.getFilter(), filterAxes), byOutput, forward.getBias(),
                               forward.getEpilogue());
      result = expand(builder, product, forward.getResult().getType(), kMatrix);
    } else if (auto gradient = llvm::dyn_cast<drt::Conv2DGradInputOp>(op)) {
      Value product = multiply(builder, op->getLoc(), flatten(builder, gradient.getOutputGrad(), kMatrix), false,
                               flatten(builder, gradient.getFilter(), filterAxes), !byOutput);
      if (conv.isProduct()) {
        result = expand(builder, product, gradient.getResult().getType(), kMatrix);
      } else {
        auto type = RankedTensorType::get(windows.getShape(), builder.getF32Type());
        result = windows.put(builder, expand(builder, product, type, kWindows));
      }
    } else {
      auto ofFilter = llvm::cast<drt::Conv2DGradFilterOp>(op);
      Value a = takeWindows(ofFilter.getInput()), b = flatten(builder, ofFilter.getOutputGrad(), kMatrix);
      if (byOutput)
        std::swap(a, b);
      result = expand(builder, multiply(builder, op->getLoc(), a, true, b, false), ofFilter.getResult().getType(),
                      filterAxes);
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  static Value multiply(OpBuilder &builder, Location loc, Value a, bool transposeA, Value b, bool transposeB,
                        Value bias = {}, int32_t epilogue = 0) {
    auto size = [](Value matrix, bool transposed, int64_t axis) {
      return llvm::cast<RankedTensorType>(matrix.getType()).getDimSize(transposed ? 1 - axis : axis);
    };
    auto type = RankedTensorType::get({size(a, transposeA, 0), size(b, transposeB, 1)}, builder.getF32Type());
    const UnitAttr unit = builder.getUnitAttr();
    return drt::MatmulOp::create(builder, loc, type, a, b, bias, transposeA ? unit : UnitAttr(),
                                 transposeB ? unit : UnitAttr(), builder.getI32IntegerAttr(epilogue),
                                 /*joined=*/UnitAttr(), DenseI64ArrayAttr(), /*precision=*/StringAttr());
  }
  static Value flatten(OpBuilder &builder, Value tensor, ArrayRef<ReassociationIndices> axes) {
    return tensor::CollapseShapeOp::create(builder, tensor.getLoc(), tensor, axes);
  }
  static Value expand(OpBuilder &builder, Value matrix, Type type, ArrayRef<ReassociationIndices> axes) {
    return tensor::ExpandShapeOp::create(builder, matrix.getLoc(), type, matrix, axes);
  }
};

} // namespace
} // namespace distc

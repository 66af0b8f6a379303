//===- HalfProducts.cpp - Products of float16 that keep float32's range ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/kernels/HalfProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/kernels/Reshapes.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc {

namespace {

/// A tensor of float16, and the number that its elements are to be multiplied with.
struct Scaled {
  Value tensor, back;
};

class HalfProducts {
public:
  void run(drt::EntryOp entry) {
    SmallVector<drt::MatmulOp> products;
    entry.walk([&](drt::MatmulOp product) {
      if (typeOf(product.getA()).getElementType().isF32())
        products.push_back(product);
    });
    for (drt::MatmulOp product : products)
      narrow(product);
  }

private:
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  void narrow(drt::MatmulOp product) {
    const Scaled a = scale(product.getA()), b = scale(product.getB());
    const Value bias = product.getBias();
    const auto epilogue = static_cast<int32_t>(product.getEpilogue());
    product.getAMutable().assign(a.tensor);
    product.getBMutable().assign(b.tensor);
    product.getBiasMutable().clear();
    product.setEpilogue(DRT_EPILOGUE_NONE);
    OpBuilder builder(product);
    builder.setInsertionPointAfter(product);
    Value result = product.getResult();
    SmallVector<Value> read = {result, a.back, b.back};
    if (bias)
      read.push_back(bias);
    Value scaledBack =
        elementwise(builder, product.getLoc(), typeOf(result), read, [&](ImplicitLocOpBuilder &b, ValueRange x) {
          Value value = arith::MulFOp::create(b, arith::MulFOp::create(b, x[0], x[1]), x[2]);
          if (bias)
            value = arith::AddFOp::create(b, value, x[3]);
          return activate(b, epilogue, value);
        });
    result.replaceAllUsesExcept(scaledBack, scaledBack.getDefiningOp());
  }

  static Value activate(ImplicitLocOpBuilder &b, int32_t epilogue, Value x) {
    auto number = [&](float value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(value)).getResult(); };
    switch (epilogue) {
    case DRT_EPILOGUE_RELU:
      return arith::MaximumFOp::create(b, x, number(0));
    case DRT_EPILOGUE_TANH:
      return math::TanhOp::create(b, x);
    case DRT_EPILOGUE_SIGMOID:
      return arith::DivFOp::create(
          b, number(1), arith::AddFOp::create(b, number(1), math::ExpOp::create(b, arith::NegFOp::create(b, x))));
    default:
      return x;
    }
  }

  /// Reshapes stand behind it, so that what several products read in several shapes is scaled once.
  Scaled scale(Value value) {
    Scaled &found = scaledOf[value];
    if (found.tensor)
      return found;
    Operation *op = value.getDefiningOp();
    OpBuilder builder(value.getContext());
    if (isReshape(op)) {
      const Scaled source = scale(op->getOperand(0));
      return scaledOf[value] = {reshapeLike(op, source.tensor), source.back};
    }
    builder.setInsertionPointAfterValue(value);
    const Location loc = value.getLoc();
    const auto number = RankedTensorType::get({}, builder.getF32Type());
    Value most = getMost(builder, loc, value);
    Value factor = elementwise(builder, loc, number, most,
                               [](ImplicitLocOpBuilder &b, ValueRange x) { return powerOfTwo(b, getScale(b, x[0])); });
    Value back = elementwise(builder, loc, number, most, [](ImplicitLocOpBuilder &b, ValueRange x) {
      return powerOfTwo(b, arith::SubIOp::create(b, integer(b, 2 * kBias), getScale(b, x[0])));
    });
    Value tensor =
        elementwise(builder, loc, typeOf(value).clone(builder.getF16Type()), {value, factor},
                    [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                      return arith::TruncFOp::create(b, b.getF16Type(), arith::MulFOp::create(b, x[0], x[1]));
                    });
    return scaledOf[value] = {tensor, back};
  }

  // Of float32; and the exponent of the largest element: float16's largest number is just below 2^16.
  static constexpr int32_t kBias = 127, kMantissaBits = 23, kLargest = 14;

  static Value integer(ImplicitLocOpBuilder &b, int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }

  /// The exponent, as float32 has it, of the power of two that brings `most` to 2^kLargest and less than twice that.
  /// With what is no number, or none but zeros, any will do.
  static Value getScale(ImplicitLocOpBuilder &b, Value most) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), most);
    Value exponent = arith::ShRUIOp::create(b, bits, integer(b, kMantissaBits));
    Value scale = arith::SubIOp::create(b, integer(b, 2 * kBias + kLargest), exponent);
    // It and its inverse are normal numbers.
    return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, scale, integer(b, 2 * kBias - 1)), integer(b, 1));
  }

  static Value powerOfTwo(ImplicitLocOpBuilder &b, Value exponent) {
    Value bits = arith::ShLIOp::create(b, exponent, integer(b, kMantissaBits));
    return arith::BitcastOp::create(b, b.getF32Type(), bits);
  }

  /// The largest absolute value.
  static Value getMost(OpBuilder &builder, Location loc, Value value) {
    const int64_t rank = typeOf(value).getRank();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), builder.getF32Type());
    Value init = linalg::FillOp::create(builder, loc, ValueRange{zero}, ValueRange{empty}).getResult(0);
    const SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(rank),
                                         AffineMap::get(rank, 0, builder.getContext())};
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), value, init, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::reduction),
        [](OpBuilder &body, Location at, ValueRange x) {
          Value size = math::AbsFOp::create(body, at, x[0]);
          linalg::YieldOp::create(body, at, arith::MaximumFOp::create(body, at, x[1], size).getResult());
        });
    return generic.getResult(0);
  }

  /// Operands are of the result's shape, of its last axis, or numbers.
  static Value elementwise(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange operands,
                           llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> emit) {
    const int64_t rank = type.getRank();
    MLIRContext *context = builder.getContext();
    const AffineMap identity = builder.getMultiDimIdentityMap(rank);
    SmallVector<AffineMap> maps;
    for (Value operand : operands) {
      const int64_t own = typeOf(operand).getRank();
      maps.push_back(own == rank ? identity
                     : own == 1  ? AffineMap::get(rank, 0, builder.getAffineDimExpr(rank - 1), context)
                                 : AffineMap::get(rank, 0, context));
    }
    maps.push_back(identity);
    Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    auto generic = linalg::GenericOp::create(builder, loc, type, operands, init, maps,
                                             SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
                                             [&](OpBuilder &body, Location at, ValueRange x) {
                                               ImplicitLocOpBuilder b(at, body);
                                               linalg::YieldOp::create(body, at, emit(b, x));
                                             });
    return generic.getResult(0);
  }

  llvm::DenseMap<Value, Scaled> scaledOf;
};

} // namespace

void makeHalfProducts(drt::EntryOp entry) { HalfProducts().run(entry); }

} // namespace distc

//===- SetPrecision.cpp - What products are made of ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/Casts.h"
#include "passes/lower/kernels/HalfProducts.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/plan/MatmulType.h"
#include "runtime/include/drt/drt.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SETPRECISION
#include "passes/lower/Passes.h.inc"

llvm::StringRef getName(MatmulType type) {
  switch (type) {
  case MatmulType::F32:
    return "fp32";
  case MatmulType::TF32:
    return "tf32";
  case MatmulType::BF16:
    break;
  }
  return "bf16";
}

MatmulType getMatmulType(Operation *op) {
  auto product = dyn_cast<drt::ProductInterface>(op);
  if (!product)
    return MatmulType::F32;
  if (StringAttr name = product.getPrecisionAttr(); name && name.getValue() == getName(MatmulType::TF32))
    return MatmulType::TF32;
  // Matrix units multiply float16 as fast as bfloat16.
  const Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  return element.isBF16() || element.isF16() ? MatmulType::BF16 : MatmulType::F32;
}

namespace {

bool isConvolution(Operation *op) { return op->hasTrait<drt::Convolves>(); }

// What has other elements is not made of float32, and stays as it is.
bool isProductOfFloat32(Operation *op) {
  return isa<drt::ProductInterface>(op) && llvm::all_of(op->getOperandTypes(), [](Type type) {
           return cast<RankedTensorType>(type).getElementType().isF32();
         });
}

/// The products of graphs that are made of narrow floats themselves: operands that are widened for a product alone are
/// taken as they are, which multiplies the same numbers, and a result that is only rounded is rounded by the library.
class ReadNarrow {
public:
  explicit ReadNarrow(bool device) : device(device) {}

  void run(drt::EntryOp entry) {
    SmallVector<Operation *> products;
    entry.walk([&](drt::ProductInterface product) {
      if (isProductOfFloat32(product))
        products.push_back(product);
    });
    for (Operation *product : products)
      narrow(product);
  }

private:
  void narrow(Operation *product) {
    Value a = product->getOperand(0), b = product->getOperand(1);
    const Type element = getElement(a);
    if (!element || getElement(b) != element)
      return;
    const bool hasBias = product->getNumOperands() > 2;
    Operation *rounding = getRounding(product->getResult(0), element);
    // A convolution has one type in all tensors, but for a filter's gradient on processors.
    if (isConvolution(product) && (hasBias || (!rounding && (device || !isa<drt::Conv2DGradFilterOp>(product)))))
      return;
    product->setOperand(0, getNarrow(a));
    product->setOperand(1, getNarrow(b));
    if (!rounding || hasBias || (isa<drt::Conv2DGradFilterOp>(product) && !device))
      return;
    product->getResult(0).setType(cast<RankedTensorType>(rounding->getResult(0).getType()));
    rounding->getResult(0).replaceAllUsesWith(product->getResult(0));
    rounding->erase();
  }

  /// What the elements were before they were widened, behind reshapes; null where they were not.
  Type getElement(Value value) const {
    Operation *op = value.getDefiningOp();
    if (isReshape(op))
      return getElement(op->getOperand(0));
    Value source = getCast<arith::ExtFOp>(op);
    if (!source)
      return {};
    const Type element = cast<RankedTensorType>(source.getType()).getElementType();
    return element.isBF16() || (device && element.isF16()) ? element : Type();
  }

  static Value getNarrow(Value value) {
    Operation *op = value.getDefiningOp();
    return isReshape(op) ? reshapeLike(op, getNarrow(op->getOperand(0))) : getCast<arith::ExtFOp>(op);
  }

  /// What rounds the value to `element`, where nothing else reads it.
  static Operation *getRounding(Value value, Type element) {
    if (!value.hasOneUse() || !getCast<arith::TruncFOp>(*value.user_begin()))
      return nullptr;
    Operation *rounding = *value.user_begin();
    return cast<RankedTensorType>(rounding->getResult(0).getType()).getElementType() == element ? rounding : nullptr;
  }

  bool device;
};

/// The products of an entry take bfloat16. A value that one of them reads is rounded once, and element-wise work and
/// sums that read it too read what was rounded, so that it is kept and moved as bfloat16 only; but what a variable or
/// the batch holds is rounded for products alone.
class NarrowProducts {
public:
  NarrowProducts(drt::EntryOp entry, bool device)
      : entry(entry), device(device), narrow(BFloat16Type::get(entry.getContext())) {
    entry.walk([&](Operation *op) {
      if (isProductOfFloat32(op))
        products.push_back(op);
    });
  }

  void run() {
    for (Operation *product : products)
      // The library has one type in all tensors; that of processors sums a filter's gradient up in float32.
      if (isConvolution(product) && (device || !isa<drt::Conv2DGradFilterOp>(product)))
        narrowResult(product);
    SmallVector<drt::MatmulOp> inner;
    for (Operation *product : products)
      if (auto matmul = dyn_cast<drt::MatmulOp>(product); matmul && isBetweenProducts(matmul))
        inner.push_back(matmul);
    for (drt::MatmulOp matmul : inner) {
      if (Value bias = matmul.getBias()) // the library has one type in both
        matmul.getBiasMutable().assign(round(bias));
      narrowResult(matmul);
    }
    if (device)
      narrowPools();
    for (Operation *product : products)
      for (OpOperand &operand : product->getOpOperands())
        if (!isBias(operand) || isConvolution(product))
          operand.set(round(operand.get()));
    for (Operation *product : products)
      if (auto matmul = dyn_cast<drt::MatmulOp>(product))
        foldRounding(matmul);
    narrowRectified();
    if (device)
      fillChannels();
  }

private:
  static bool isBias(OpOperand &operand) {
    return isa<drt::MatmulOp, drt::Conv2DOp>(operand.getOwner()) && operand.getOperandNumber() == 2;
  }

  /// Whether the value is read on the way to other products alone, or by sums of many elements. A loss and what is
  /// fetched stay float32, and so does what a variable is updated with as it is.
  static bool isBetweenProducts(Operation *op) {
    SmallVector<std::pair<Value, unsigned>> values = {{op->getResult(0), 0}}; // with whether it is summed
    llvm::DenseSet<std::pair<Value, unsigned>> seen;
    while (!values.empty()) {
      auto [value, summed] = values.pop_back_val();
      if (!seen.insert({value, summed}).second)
        continue;
      for (Operation *user : value.getUsers()) {
        if (isa<drt::ProductInterface>(user))
          continue;
        const bool updates = isa<drt::UpdateOp, drt::AllReduceStartOp>(user);
        if (updates && summed)
          continue;
        auto generic = dyn_cast<linalg::GenericOp>(user);
        if (!generic) // its body reads by index
          generic = user->getParentOfType<linalg::GenericOp>();
        if (generic)
          user = generic;
        if (!generic && !isReshape(user) && !isa<drt::PoolOp, drt::PoolGradOp>(user))
          return false;
        for (Value result : user->getResults())
          values.push_back({result, summed || (generic && generic.getNumReductionLoops() > 0)});
      }
    }
    return true;
  }

  /// The maximum of rounded elements is the rounded maximum.
  void narrowPools() {
    auto isMaximum = [](auto pool) { return pool.getKind() == DRT_POOL_MAX; };
    SmallVector<Operation *> pools;
    entry.walk([&](drt::PoolOp pool) {
      if (isMaximum(pool) && cast<RankedTensorType>(pool.getType()).getElementType().isF32() && isBetweenProducts(pool))
        pools.push_back(pool);
    });
    entry.walk([&](drt::PoolGradOp pool) {
      if (isMaximum(pool) && llvm::is_contained(pools, pool.getInputAndOutput()[1].getDefiningOp()))
        pools.push_back(pool);
    });
    for (Operation *pool : pools)
      narrowResult(pool);
    for (Operation *pool : pools)
      for (OpOperand &operand : pool->getOpOperands())
        operand.set(round(operand.get()));
  }

  /// A rectifier's gradient is as exact as what is rectified, which products read: element-wise work and sums read it,
  /// often several.
  void narrowRectified() {
    SmallVector<linalg::GenericOp> found;
    entry.walk([&](linalg::GenericOp op) {
      if (isRectified(op) && isBetweenProducts(op))
        found.push_back(op);
    });
    for (linalg::GenericOp op : found) {
      Value result = op.getResult(0);
      OpBuilder builder(op.getContext());
      builder.setInsertionPointAfter(op);
      Value rounded = castTo(builder, op.getLoc(), result, narrow);
      Value wide = widen(builder, rounded);
      result.replaceAllUsesExcept(wide, rounded.getDefiningOp());
    }
  }

  /// Whether a factor says if an element, which is kept as bfloat16, is above a bound.
  bool isRectified(linalg::GenericOp op) {
    if (op->getNumResults() != 1 || op.getNumReductionLoops() > 0 || narrowOf.contains(op->getResult(0)) ||
        !cast<RankedTensorType>(op.getResult(0).getType()).getElementType().isF32())
      return false;
    auto product = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::MulFOp>();
    return product && llvm::any_of(product->getOperands(), [&](Value factor) {
             auto truth = factor.getDefiningOp<arith::UIToFPOp>();
             auto comparison = truth ? truth.getIn().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
             return comparison && llvm::any_of(comparison->getOperands(), [&](Value compared) {
                      auto element = dyn_cast<BlockArgument>(compared);
                      return element && narrowOf.contains(op->getOperand(element.getArgNumber()));
                    });
           });
  }

  Value castTo(OpBuilder &builder, Location loc, Value value, Type element) {
    auto type = cast<RankedTensorType>(value.getType());
    Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
    const AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    const SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), value, init, {identity, identity}, loops,
        [&](OpBuilder &body, Location at, ValueRange arguments) {
          Value result = element.isF32() ? arith::ExtFOp::create(body, at, element, arguments[0]).getResult()
                                         : arith::TruncFOp::create(body, at, element, arguments[0]).getResult();
          linalg::YieldOp::create(body, at, result);
        });
    return generic.getResult(0);
  }

  Value widen(OpBuilder &builder, Value value) {
    Value wide = castTo(builder, value.getLoc(), value, builder.getF32Type());
    narrowOf[wide] = value;
    return wide;
  }

  /// Its readers get what is widened again.
  void narrowResult(Operation *op) {
    Value result = op->getResult(0);
    result.setType(cast<RankedTensorType>(result.getType()).clone(narrow));
    widenReaders(result);
  }

  /// The readers of a value that became bfloat16 widen it; those of its reshapes do, so that nothing stands between it
  /// and what it is fused with.
  void widenReaders(Value value) {
    OpBuilder builder(value.getContext());
    Value wide;
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      if (isReshape(user)) {
        Value reshaped = user->getResult(0);
        reshaped.setType(cast<RankedTensorType>(reshaped.getType()).clone(narrow));
        widenReaders(reshaped);
      } else if (auto extract = dyn_cast<tensor::ExtractOp>(user)) {
        extract.getResult().setType(narrow);
        builder.setInsertionPointAfter(extract);
        Value element = arith::ExtFOp::create(builder, extract.getLoc(), builder.getF32Type(), extract.getResult());
        extract.getResult().replaceAllUsesExcept(element, element.getDefiningOp());
      } else {
        if (!wide) {
          builder.setInsertionPointAfterValue(value);
          wide = widen(builder, value);
        }
        use.set(wide);
      }
    }
  }

  /// Matrix units take eight channels at once; of images with three the library would use none.
  void fillChannels() {
    constexpr int64_t kChannels = 8;
    constexpr size_t kImageChannels = 3; // of the descriptor; its last number is that of groups
    for (Operation *product : products) {
      if (!isa<drt::Conv2DOp, drt::Conv2DGradFilterOp>(product))
        continue;
      auto name = StringAttr::get(product->getContext(), "descriptor");
      SmallVector<int64_t> descriptor(cast<DenseI64ArrayAttr>(product->getAttr(name)).asArrayRef());
      const int64_t channels = descriptor[kImageChannels];
      auto layout = product->getAttrOfType<StringAttr>("filter_layout");
      if (channels >= kChannels || descriptor.back() != 1 || !layout || layout.getValue() != "OHWI")
        continue;
      descriptor[kImageChannels] = kChannels;
      product->setAttr(name, DenseI64ArrayAttr::get(product->getContext(), descriptor));
      product->setOperand(0, withChannels(product->getOperand(0), kChannels));
      if (isa<drt::Conv2DOp>(product)) {
        product->setOperand(1, withChannels(product->getOperand(1), kChannels));
        continue;
      }
      Value result = product->getResult(0);
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.back() = kChannels;
      result.setType(type.clone(shape));
      Value own = withChannels(result, channels);
      result.replaceUsesWithIf(own,
                               [&](OpOperand &use) { return use.getOwner()->getParentOp() != own.getDefiningOp(); });
    }
  }

  /// The innermost axis with so many elements: its first ones, or zeros behind all.
  Value withChannels(Value value, int64_t channels) {
    Value &found = channelsOf[{value, static_cast<unsigned>(channels)}];
    if (found)
      return found;
    auto type = cast<RankedTensorType>(value.getType());
    const int64_t rank = type.getRank(), own = type.getShape().back();
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = channels;
    ImplicitLocOpBuilder b(value.getLoc(), value.getContext());
    b.setInsertionPointAfterValue(value);
    Value empty = tensor::EmptyOp::create(b, shape, type.getElementType());
    auto generic = linalg::GenericOp::create(
        b, empty.getType(), ValueRange(), empty, b.getMultiDimIdentityMap(rank),
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [&](OpBuilder &body, Location at, ValueRange) {
          SmallVector<Value> place;
          for (int64_t axis = 0; axis < rank; ++axis)
            place.push_back(linalg::IndexOp::create(body, at, axis));
          Value inside;
          if (channels > own) {
            inside = arith::CmpIOp::create(body, at, arith::CmpIPredicate::ult, place.back(),
                                           arith::ConstantIndexOp::create(body, at, own));
            place.back() =
                arith::MinUIOp::create(body, at, place.back(), arith::ConstantIndexOp::create(body, at, own - 1));
          }
          Value element = tensor::ExtractOp::create(body, at, value, place);
          if (inside) {
            Value zero = arith::ConstantOp::create(body, at, body.getZeroAttr(type.getElementType()));
            element = arith::SelectOp::create(body, at, inside, element, zero);
          }
          linalg::YieldOp::create(body, at, element);
        });
    return found = generic.getResult(0);
  }

  /// The element that is read, where a value is that or else a constant; null where it is anything else.
  static tensor::ExtractOp getRead(Value value) {
    Value one, other;
    if (auto extract = value.getDefiningOp<tensor::ExtractOp>())
      return extract;
    if (auto select = value.getDefiningOp<arith::SelectOp>()) {
      one = select.getTrueValue();
      other = select.getFalseValue();
    } else if (auto branch = value.getDefiningOp<scf::IfOp>(); branch && branch.getNumResults() == 1) {
      one = branch.thenYield().getOperand(0);
      other = branch.elseYield().getOperand(0);
    }
    if (!one)
      return {};
    return matchPattern(other, m_Constant()) ? getRead(one)
           : matchPattern(one, m_Constant()) ? getRead(other)
                                             : tensor::ExtractOp();
  }

  /// The same for an operation that pads a tensor or cuts something out of it.
  static tensor::ExtractOp getMoved(Operation *op) {
    auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
    if (!generic || generic.getNumDpsInputs() > 0 || generic->getNumResults() != 1 ||
        generic.getNumReductionLoops() > 0)
      return {};
    return getRead(generic.getBody()->getTerminator()->getOperand(0));
  }

  /// Whether all of what the elements are taken from may be rounded: it is made by the entry, and is not much more. Of
  /// a table by rows, and of what the batch holds, only what is taken is.
  static bool isWorthRounding(Value source, Value moved) {
    Operation *def = source.getDefiningOp();
    auto count = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
    return !isGiven(def) && count(source) <= 2 * count(moved);
  }

  /// A variable, a feed or a constant.
  static bool isGiven(Operation *def) {
    return !def || isa<drt::ReadOp, drt::FeedOp>(def) || def->hasTrait<OpTrait::ConstantLike>() ||
           (isReshape(def) && isGiven(def->getOperand(0).getDefiningOp()));
  }

  /// Takes the elements from a tensor of bfloat16; what it gives is no less exact.
  Value moveFrom(OpBuilder &builder, linalg::GenericOp op, tensor::ExtractOp extract, Value source) {
    const Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    IRMapping mapping;
    mapping.map(op.getDpsInits()[0], tensor::EmptyOp::create(builder, loc, type.getShape(), narrow).getResult());
    auto moved = cast<linalg::GenericOp>(builder.clone(*op, mapping));
    moved->getResult(0).setType(type.clone(narrow));
    moved.getBody()->getArgument(0).setType(narrow);
    auto read = mapping.lookup(extract.getResult()).getDefiningOp<tensor::ExtractOp>();
    read.getTensorMutable().assign(source);
    read.getResult().setType(narrow);
    builder.setInsertionPointAfter(read);
    Value wide = arith::ExtFOp::create(builder, loc, type.getElementType(), read.getResult());
    read.getResult().replaceAllUsesExcept(wide, wide.getDefiningOp());
    Operation *end = moved.getBody()->getTerminator();
    builder.setInsertionPoint(end);
    end->setOperand(0, arith::TruncFOp::create(builder, loc, narrow, end->getOperand(0)));
    builder.setInsertionPointAfter(moved);
    return moved->getResult(0);
  }

  Value round(Value value) {
    Value &rounded = narrowOf[value];
    if (rounded)
      return rounded;
    Operation *def = value.getDefiningOp();
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    if (isReshape(def)) {
      const Value source = round(def->getOperand(0));
      return narrowOf[value] = reshapeLike(def, source);
    }
    if (tensor::ExtractOp extract = getMoved(def); extract && isWorthRounding(extract.getTensor(), value)) {
      const Value source = round(extract.getTensor());
      builder.setInsertionPoint(def);
      return narrowOf[value] = moveFrom(builder, cast<linalg::GenericOp>(def), extract, source);
    }
    Value cast = castTo(builder, value.getLoc(), value, narrow);
    narrowOf[value] = cast;
    casts.insert(cast.getDefiningOp());
    if (!isGiven(def))
      readRounded(value, cast);
    return cast;
  }

  /// Element-wise work and sums take what was rounded, in whatever shape they read it.
  void readRounded(Value value, Value rounded) {
    auto readsElements = [&](OpOperand &use) {
      return isa<linalg::LinalgOp>(use.getOwner()) && use.getOwner() != rounded.getDefiningOp();
    };
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      if (!isReshape(user) || !isReadByElements(user->getResult(0)) || narrowOf.lookup(user->getResult(0)))
        continue;
      const Value reshaped = reshapeLike(user, rounded);
      narrowOf[user->getResult(0)] = reshaped;
      readRounded(user->getResult(0), reshaped);
    }
    if (!llvm::any_of(value.getUses(), readsElements))
      return;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(rounded);
    value.replaceUsesWithIf(widen(builder, rounded), readsElements);
  }

  static bool isReadByElements(Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return isa<linalg::LinalgOp>(user) || (isReshape(user) && isReadByElements(user->getResult(0)));
    });
  }

  /// A product whose result is nowhere needed as float32 rounds it itself, with what is added in its epilogue.
  void foldRounding(drt::MatmulOp product) {
    Value result = product.getResult();
    if (!result.hasOneUse() || !casts.contains(*result.user_begin()))
      return;
    Operation *cast = *result.user_begin();
    if (Value bias = product.getBias())
      product.getBiasMutable().assign(round(bias));
    result.setType(cast->getResult(0).getType());
    cast->getResult(0).replaceAllUsesWith(result);
    for (auto &[wide, rounded] : narrowOf)
      if (rounded == cast->getResult(0))
        rounded = result;
    casts.erase(cast);
    cast->erase();
  }

  drt::EntryOp entry;
  bool device;
  Type narrow;
  SmallVector<Operation *> products;
  llvm::DenseMap<Value, Value> narrowOf;                        // what holds it as bfloat16
  llvm::DenseSet<Operation *> casts;                            // that round
  llvm::DenseMap<std::pair<Value, unsigned>, Value> channelsOf; // with so many channels
};

constexpr StringLiteral kHalf = "fp16";

struct SetPrecision : impl::SetPrecisionBase<SetPrecision> {
  using Base::Base;

  void runOnOperation() override {
    ReadNarrow(device).run(getOperation());
    if (precision == distc::getName(MatmulType::F32))
      return;
    if (precision == distc::getName(MatmulType::BF16)) {
      NarrowProducts(getOperation(), device).run();
      return;
    }
    if (precision != distc::getName(MatmulType::TF32) && precision != kHalf) {
      getOperation()->emitError() << "has no matmuls in " << precision << "; there are fp32, tf32, bf16 and fp16";
      return signalPassFailure();
    }
    if (precision == kHalf) {
      makeHalfProducts(getOperation());
      if (!device)
        return;
    }
    auto name = StringAttr::get(&getContext(), distc::getName(MatmulType::TF32));
    getOperation()->walk([&](drt::ProductInterface product) {
      if (isProductOfFloat32(product))
        product.setPrecisionAttr(name);
    });
  }
};

} // namespace
} // namespace distc

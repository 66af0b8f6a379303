//===- FoldTransposes.cpp - Library calls take operands as the graph has them ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "passes/lower/Passes.h.inc"

namespace {

/// The input of a copy whose elements stand in another order.
OpOperand *getCopied(Operation *op) {
  auto copy = llvm::dyn_cast_or_null<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
      copy.getNumLoops() != copy.getNumParallelLoops())
    return nullptr;
  OpOperand *input = copy.getDpsInputOperand(0);
  Block &body = copy.getRegion().front();
  if (!copy.getMatchingIndexingMap(copy.getDpsInitOperand(0)).isIdentity() ||
      !copy.getMatchingIndexingMap(input).isPermutation() || body.getTerminator()->getOperand(0) != body.getArgument(0))
    return nullptr;
  return input;
}

/// Axis i of what a copy makes is axis order[i] of its input.
SmallVector<unsigned> getOrder(OpOperand *input) {
  AffineMap read = llvm::cast<linalg::GenericOp>(input->getOwner()).getMatchingIndexingMap(input);
  SmallVector<unsigned> order(read.getNumDims());
  for (unsigned from = 0; from < order.size(); ++from)
    order[read.getDimPosition(from)] = from;
  return order;
}

/// What `op` transposes so; null where it does something else.
Value getTransposed(Operation *op, ArrayRef<unsigned> order) {
  OpOperand *input = getCopied(op);
  return input && ArrayRef<unsigned>(getOrder(input)) == order ? input->get() : Value();
}

bool isIdentity(ArrayRef<unsigned> order) { return llvm::is_sorted(order); }

void swapLast(MutableArrayRef<unsigned> order) { std::swap(order[order.size() - 1], order[order.size() - 2]); }

/// Rows become columns, of each matrix by itself.
RankedTensorType swapLast(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return type.clone(shape);
}

/// `value` with its axes in `order`: itself, where that is theirs.
Value transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<unsigned> order) {
  if (isIdentity(order))
    return value;
  auto type = llvm::cast<RankedTensorType>(value.getType());
  MLIRContext *context = builder.getContext();
  AffineMap read = inversePermutation(AffineMap::getPermutationMap(order, context));
  Value init = tensor::EmptyOp::create(builder, loc,
                                       llvm::map_to_vector(order, [&](unsigned axis) { return type.getDimSize(axis); }),
                                       type.getElementType());
  SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, init.getType(), value, init,
             ArrayRef<AffineMap>{read, builder.getMultiDimIdentityMap(order.size())}, loops,
             [](OpBuilder &b, Location at, ValueRange x) { linalg::YieldOp::create(b, at, x.front()); })
      .getResult(0);
}

struct FoldTransposes : impl::FoldTransposesBase<FoldTransposes> {
  using Base::Base;

  void runOnOperation() override {
    // Copies are erased, before and behind what takes them.
    SmallVector<Operation *> calls;
    getOperation().walk([&](Operation *op) {
      if (llvm::isa<drt::MatmulOp>(op) || (filters && op->hasTrait<drt::Convolves>()))
        calls.push_back(op);
    });
    for (Operation *op : calls)
      llvm::TypeSwitch<Operation *>(op)
          .Case([](drt::MatmulOp product) {
            foldOperand(product.getAMutable(), [&] { product.setTransposeA(!product.getTransposeA()); });
            foldOperand(product.getBMutable(), [&] { product.setTransposeB(!product.getTransposeB()); });
            foldResult(product);
          })
          .Case<drt::Conv2DOp, drt::Conv2DGradInputOp>([](auto conv) { foldFilter(conv); })
          .Case([](drt::Conv2DGradFilterOp conv) { foldFilterGradient(conv); });
  }

private:
  /// A product reads a matrix by rows or by columns. Where the last axis of what is copied would not stay the last one,
  /// the copy goes from one end of memory to the other: it does without that, and may then be none.
  static void foldOperand(OpOperand &operand, llvm::function_ref<void()> transposeOperand) {
    Operation *copy = operand.get().getDefiningOp();
    OpOperand *input = getCopied(copy);
    if (!input)
      return;
    SmallVector<unsigned> order = getOrder(input);
    if (order.size() < 2 || order[order.size() - 2] != order.size() - 1)
      return;
    swapLast(order);
    OpBuilder builder(copy);
    operand.set(transpose(builder, copy->getLoc(), input->get(), order));
    transposeOperand();
    if (copy->use_empty())
      copy->erase();
  }

  /// A^T is that of the turned factors.
  static void foldResult(drt::MatmulOp product) {
    if (!product->hasOneUse() || product.getBias() || product.getEpilogue())
      return;
    Operation *copy = *product->user_begin();
    OpOperand *input = getCopied(copy);
    if (!input || input->get() != product.getResult())
      return;
    SmallVector<unsigned> order = getOrder(input);
    const unsigned rank = order.size();
    if (order[rank - 1] != rank - 2)
      return;
    // Rows and columns of the product have changed places: the copy takes each from where the other was.
    for (unsigned &axis : order)
      axis = axis == rank - 1 ? rank - 2 : axis == rank - 2 ? rank - 1 : axis;
    Value a = product.getA(), b = product.getB();
    const bool transposeA = product.getTransposeA(), transposeB = product.getTransposeB();
    product.getAMutable().assign(b);
    product.getBMutable().assign(a);
    product.setTransposeA(!transposeB);
    product.setTransposeB(!transposeA);
    product.getResult().setType(swapLast(llvm::cast<RankedTensorType>(product.getResult().getType())));
    OpBuilder builder(copy);
    copy->getResult(0).replaceAllUsesWith(transpose(builder, copy->getLoc(), product.getResult(), order));
    copy->erase();
  }

  template <typename Conv> static void foldFilter(Conv conv) {
    if (conv.getFilterLayout())
      return;
    // HWIO of OIHW.
    Operation *copy = conv.getFilter().getDefiningOp();
    Value filter = getTransposed(copy, {2, 3, 1, 0});
    if (!filter)
      return;
    conv.getFilterMutable().assign(filter);
    conv.setFilterLayout("OIHW");
    if (copy->use_empty())
      copy->erase();
  }

  static void foldFilterGradient(drt::Conv2DGradFilterOp conv) {
    if (conv.getFilterLayout() || conv->use_empty())
      return;
    SmallVector<Operation *> users(conv->getUsers());
    // OIHW of HWIO.
    if (!llvm::all_of(users, [](Operation *user) { return static_cast<bool>(getTransposed(user, {3, 2, 0, 1})); }))
      return;
    conv.setFilterLayout("OIHW");
    conv.getResult().setType(llvm::cast<RankedTensorType>(users.front()->getResult(0).getType()));
    for (Operation *user : users) {
      user->getResult(0).replaceAllUsesWith(conv.getResult());
      user->erase();
    }
  }
};

} // namespace
} // namespace distc

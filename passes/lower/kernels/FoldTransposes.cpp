//===- FoldFilterLayouts.cpp - Convolutions take filters in the layout that the graph has them in --===//
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

#define GEN_PASS_DEF_FOLDFILTERLAYOUTS
#include "passes/lower/Passes.h.inc"

namespace {

/// What `value` is a transposition of, where axis i of it is axis order[i] of that.
Value getTransposed(Operation *op, ArrayRef<unsigned> order) {
  auto copy = llvm::dyn_cast_or_null<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
      copy.getNumParallelLoops() != order.size() || copy.getNumLoops() != order.size())
    return {};
  OpOperand *input = copy.getDpsInputOperand(0);
  AffineMap read = copy.getMatchingIndexingMap(input);
  Block &body = copy.getRegion().front();
  if (!copy.getMatchingIndexingMap(copy.getDpsInitOperand(0)).isIdentity() || !read.isPermutation() ||
      body.getTerminator()->getOperand(0) != body.getArgument(0))
    return {};
  for (auto [to, from] : llvm::enumerate(order))
    if (read.getDimPosition(from) != to)
      return {};
  return input->get();
}

struct FoldFilterLayouts : impl::FoldFilterLayoutsBase<FoldFilterLayouts> {
  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front()))
      llvm::TypeSwitch<Operation *>(&op)
          .Case<drt::Conv2DOp, drt::Conv2DGradInputOp>([](auto conv) { foldOperand(conv); })
          .Case([](drt::Conv2DGradFilterOp conv) { foldResult(conv); });
  }

private:
  template <typename Conv> static void foldOperand(Conv conv) {
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

  static void foldResult(drt::Conv2DGradFilterOp conv) {
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

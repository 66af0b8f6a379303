//===- StackContractions.cpp - Products that share a right operand are one operation --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "passes/lower/Passes.h"
#include "passes/lower/TensorType.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/DebugLog.h"

#include <tuple>
#include <utility>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_STACKCONTRACTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// What matmuls have in common that are one: the right operand, and what is made of the product.
using Kind = std::tuple<Value, Value, Type, unsigned, unsigned>;

Kind kindOf(drt::MatmulOp product) {
  return {product.getB(), product.getBias(), product.getA().getType(), product.getTransposeB(), product.getEpilogue()};
}

/// Whether the operation, or one in its regions, takes one of the values.
bool uses(Operation &op, const llvm::DenseSet<Value> &values) {
  return op
      .walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), [&](Value operand) { return values.contains(operand); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Matmuls none of which waits for another, in the block's order.
struct Stack {
  SmallVector<drt::MatmulOp> products;
  llvm::DenseSet<Value> dependent; // their results, and what is computed from them
};

struct StackContractions : impl::StackContractionsBase<StackContractions> {
  using Base::Base;

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    countCandidates(body);
    for (Operation &op : body) {
      // What is moved stays on its side of each write.
      if (!isMemoryEffectFree(&op) && !llvm::isa<drt::ReadOp>(op)) {
        closeAll();
        continue;
      }
      auto product = llvm::dyn_cast<drt::MatmulOp>(op);
      const bool counts = product && candidates.contains(kindOf(product));
      if (counts)
        openFor(product);
      for (auto &[kind, stack] : open)
        if (!(counts && stack.products.back() == product) && uses(op, stack.dependent))
          stack.dependent.insert_range(op.getResults());
      if (counts)
        closeWhole(kindOf(product));
    }
    closeAll();
    for (SmallVector<drt::MatmulOp> &products : std::exchange(stacks, {}))
      stack(products);
  }

private:
  /// Of few rows: many are worth a call of their own.
  bool isCandidate(drt::MatmulOp product) const {
    RankedTensorType a = typeOf(product.getA()), b = typeOf(product.getB());
    return a.getRank() == 2 && b.getRank() == 2 && b.getElementType().isF32() &&
           typeOf(product.getResult()).getElementType().isF32() && !product.getTransposeA() && !product.getJoined() &&
           !product.getPrecision() && a.getDimSize(0) <= maxRows && b.getNumElements() >= minElements;
  }

  void countCandidates(Block &body) {
    candidates.clear();
    for (auto product : body.getOps<drt::MatmulOp>())
      if (isCandidate(product))
        ++candidates[kindOf(product)];
    candidates.remove_if([](auto &of) { return of.second < 2; });
  }

  /// The stack that the product is the last of: one that it does not wait for, or its own.
  void openFor(drt::MatmulOp product) {
    const Kind kind = kindOf(product);
    if (open[kind].dependent.contains(product.getA()))
      close(kind);
    open[kind].products.push_back(product);
    open[kind].dependent.insert(product.getResult());
  }

  /// Closes it where no further one has room in it, or is there.
  void closeWhole(const Kind &kind) {
    Stack &stack = open[kind];
    const int64_t rows = typeOf(stack.products.front().getA()).getDimSize(0);
    if (--candidates[kind] == 0 || rows * static_cast<int64_t>(stack.products.size() + 1) > stackRows)
      close(kind);
  }

  void close(const Kind &kind) {
    if (Stack &stack = open[kind]; stack.products.size() > 1)
      stacks.push_back(std::move(stack.products));
    open.erase(kind);
  }

  void closeAll() {
    while (!open.empty())
      close(open.back().first);
  }

  /// In the place of the last of them. What takes results of those in front of it moves behind it. Where one waits for
  /// another since others were stacked, they are two stacks.
  void stack(MutableArrayRef<drt::MatmulOp> products) {
    if (products.size() < 2)
      return;
    llvm::sort(products, [](drt::MatmulOp one, drt::MatmulOp other) { return one->isBeforeInBlock(other); });
    drt::MatmulOp first = products.front(), last = products.back();
    llvm::DenseSet<Value> dependent;
    SmallVector<Operation *> behind;
    size_t member = 0;
    for (Operation &op : llvm::make_range(first->getIterator(), std::next(last->getIterator()))) {
      const bool isMember = &op == products[member];
      if (!isMember && !uses(op, dependent))
        continue;
      if (isMember && dependent.contains(products[member].getA())) {
        stack(products.take_front(member));
        return stack(products.drop_front(member));
      }
      dependent.insert_range(op.getResults());
      if (isMember)
        ++member;
      else
        behind.push_back(&op);
    }
    LDBG("drt-stack-contractions") << products.size() << " matmuls are one: " << first;
    SmallVector<Value> lefts;
    SmallVector<Type> types;
    for (drt::MatmulOp product : products) {
      lefts.push_back(product.getA());
      types.push_back(product.getResult().getType());
    }
    OpBuilder builder(last);
    // One name says which it is; all of a loop's would be as many as its iterations.
    auto stacked =
        drt::MatmulStackedOp::create(builder, first.getLoc(), types, lefts, first.getB(), first.getBias(),
                                     first.getTransposeBAttr(), first.getEpilogueAttr(), DenseI64ArrayAttr());
    Operation *before = stacked;
    for (Operation *op : behind) {
      op->moveAfter(before);
      before = op;
    }
    for (auto [product, result] : llvm::zip(products, stacked.getResults())) {
      product.getResult().replaceAllUsesWith(result);
      product.erase();
    }
  }

  llvm::MapVector<Kind, int64_t> candidates; // that were not seen yet
  llvm::MapVector<Kind, Stack> open;
  SmallVector<SmallVector<drt::MatmulOp>> stacks;
};

} // namespace
} // namespace distc

//===- SplitLoops.cpp - Loops without branches on their counters -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What joins tensors asks at each element which of them it lies in, what pads one
// whether it lies inside. The answer is the same for whole ranges of a loop.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SPLITLOOPS
#include "passes/lower/Passes.h.inc"

namespace {

/// A kernel does not become longer than this many operations.
constexpr int64_t kMaxOperations = 8192;

/// `counter + offset` compared with a number.
struct Condition {
  arith::CmpIOp op;
  int64_t offset, bound;

  /// The smallest counters behind which the answer may be another one.
  SmallVector<int64_t, 3> getEdges() const {
    // Without a sign, what lies below zero is large.
    return {bound - offset, bound - offset + 1, -offset};
  }
  bool holds(int64_t counter) const {
    return arith::applyCmpPredicate(arith::CmpIOp(op).getPredicate(), APInt(64, counter + offset, /*isSigned=*/true),
                                    APInt(64, bound, /*isSigned=*/true));
  }
};

/// How far `value` lies from `counter`, where that is a number.
std::optional<int64_t> findOffset(Value value, Value counter) {
  int64_t offset = 0;
  while (value != counter) {
    Operation *op = value.getDefiningOp();
    if (!llvm::isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      return std::nullopt;
    std::optional<int64_t> by = getConstantIntValue(op->getOperand(1));
    if (!by)
      return std::nullopt;
    offset += llvm::isa<arith::AddIOp>(op) ? *by : -*by;
    value = op->getOperand(0);
  }
  return offset;
}

bool choosesBranch(arith::CmpIOp op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return llvm::isa<scf::IfOp>(user) ||
           (llvm::isa<arith::AndIOp, arith::OrIOp>(user) && llvm::any_of(user->getUsers(), llvm::IsaPred<scf::IfOp>));
  });
}

/// The first condition that chooses a branch by the loop's counter.
std::optional<Condition> findCondition(scf::ForOp loop) {
  std::optional<Condition> found;
  loop.walk<WalkOrder::PreOrder>([&](arith::CmpIOp op) {
    if (!op.getLhs().getType().isIndex() || !choosesBranch(op))
      return WalkResult::advance();
    std::optional<int64_t> offset = findOffset(op.getLhs(), loop.getInductionVar());
    std::optional<int64_t> bound = getConstantIntValue(op.getRhs());
    if (!offset || !bound)
      return WalkResult::advance();
    found = {op, *offset, *bound};
    return WalkResult::interrupt();
  });
  return found;
}

int64_t countOperations(Operation *op) {
  int64_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Replaces a condition by its answer, and the branches that it chooses by what they hold.
void decide(arith::CmpIOp condition, bool holds) {
  IRRewriter rewriter(condition);
  for (Operation *user : llvm::make_early_inc_range(condition->getUsers())) {
    auto branch = llvm::dyn_cast<scf::IfOp>(user);
    if (!branch)
      continue;
    Region &taken = holds ? branch.getThenRegion() : branch.getElseRegion();
    if (!taken.empty()) {
      Operation *yield = taken.front().getTerminator();
      rewriter.inlineBlockBefore(&taken.front(), branch);
      rewriter.replaceAllUsesWith(branch.getResults(), yield->getOperands());
      rewriter.eraseOp(yield);
    }
    rewriter.eraseOp(branch);
  }
  if (!condition->use_empty())
    rewriter.replaceOp(condition,
                       arith::ConstantIntOp::create(rewriter, condition.getLoc(), rewriter.getI1Type(), holds));
  else
    rewriter.eraseOp(condition);
}

struct SplitLoops : impl::SplitLoopsBase<SplitLoops> {
  using SplitLoopsBase::SplitLoopsBase;

  void runOnOperation() override {
    drt::KernelOp kernel = getOperation();
    // Outer loops first: what is decided there is no question any more within.
    SmallVector<scf::ForOp> loops;
    kernel.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (loop->getNumResults() == 0)
        loops.push_back(loop);
    });
    std::reverse(loops.begin(), loops.end());
    int64_t left = kMaxOperations - countOperations(kernel);
    while (!loops.empty())
      split(loops.pop_back_val(), loops, left);
  }

private:
  /// One loop for each range in which the loop's first condition stays as it is; they are looked at again.
  static void split(scf::ForOp loop, SmallVectorImpl<scf::ForOp> &loops, int64_t &left) {
    std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                           upper = getConstantIntValue(loop.getUpperBound()),
                           step = getConstantIntValue(loop.getStep());
    std::optional<Condition> condition = findCondition(loop);
    if (!condition || !lower || !upper || step != 1 || *lower >= *upper)
      return;
    SmallVector<int64_t, 4> begins = {*lower};
    for (int64_t edge : condition->getEdges())
      if (edge > *lower && edge < *upper)
        begins.push_back(edge);
    llvm::sort(begins);
    // Ranges in which the answer is the same are one.
    begins.erase(std::unique(begins.begin(), begins.end(),
                             [&](int64_t x, int64_t y) { return condition->holds(x) == condition->holds(y); }),
                 begins.end());
    int64_t before = countOperations(loop);
    if (before * static_cast<int64_t>(begins.size() - 1) > left)
      return;
    loops.erase(llvm::remove_if(loops, [&](scf::ForOp other) { return loop->isProperAncestor(other); }), loops.end());
    left += before;
    SmallVector<scf::ForOp> parts;
    for (auto [i, begin] : llvm::enumerate(begins)) {
      OpBuilder builder(loop);
      IRMapping mapping;
      auto part = llvm::cast<scf::ForOp>(builder.clone(*loop, mapping));
      builder.setInsertionPoint(part);
      int64_t end = i + 1 < begins.size() ? begins[i + 1] : *upper;
      part.setLowerBound(arith::ConstantIndexOp::create(builder, loop.getLoc(), begin));
      part.setUpperBound(arith::ConstantIndexOp::create(builder, loop.getLoc(), end));
      decide(llvm::cast<arith::CmpIOp>(mapping.lookup(condition->op.getOperation())), condition->holds(begin));
      left -= countOperations(part);
      part.walk<WalkOrder::PreOrder>([&](scf::ForOp inner) {
        if (inner->getNumResults() == 0)
          parts.push_back(inner);
      });
    }
    loops.append(parts.rbegin(), parts.rend());
    loop.erase();
  }
};

} // namespace
} // namespace distc

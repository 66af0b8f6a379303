//===- EliminateCommonSubexpressions.cpp - What is computed twice is computed once -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/Equivalence.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_ELIMINATECOMMONSUBEXPRESSIONS
#include "passes/lower/Passes.h.inc"

namespace {

void eliminate(Block &block) {
  // A variable's memory holds the same value until something writes to memory.
  llvm::DenseSet<Operation *, EquivalenceInfo> values, reads;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
      continue;
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        eliminate(inner);
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    const bool isPure = isMemoryEffectFree(&op), isRead = !isPure && llvm::isa<drt::ReadOp>(op);
    if (!isPure && !isRead) {
      if (!hasSingleEffect<MemoryEffects::Read>(&op))
        reads.clear();
      continue;
    }
    auto [it, inserted] = (isPure ? values : reads).insert(&op);
    if (inserted)
      continue;
    op.replaceAllUsesWith(*it);
    op.erase();
  }
}

struct EliminateCommonSubexpressions : impl::EliminateCommonSubexpressionsBase<EliminateCommonSubexpressions> {
  void runOnOperation() override { eliminate(getOperation().getBody().front()); }
};

} // namespace
} // namespace distc

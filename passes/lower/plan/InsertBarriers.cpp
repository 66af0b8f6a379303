//===- InsertBarriers.cpp - Replicas meet where their accesses could race ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "passes/lower/Passes.h.inc"

namespace {

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    for (drt::EntryOp entry : getEntries(getOperation())) {
      PlanOrder order(entry);
      if (!order.replicasShareMemory())
        continue;
      // As late as possible: a barrier then orders all that came before it, and no plan has fewer.
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        auto access = dyn_cast<drt::AccessInterface>(op);
        std::optional<Race> race = access ? order.findRace(access) : std::nullopt;
        if (race && race->earlier != &op) {
          LDBG("drt-insert-barriers") << "between " << *race->earlier << " and " << op;
          OpBuilder builder(&op);
          order.advance(drt::BarrierOp::create(builder, op.getLoc()));
        }
        order.advance(&op);
      }
    }
  }
};

} // namespace
} // namespace distc

//===- MergeShares.cpp - Shares that one task has all of are whole again ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/entries/ShareTypes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_MERGESHARES
#include "passes/lower/Passes.h.inc"

namespace {

struct MergeShares : impl::MergeSharesBase<MergeShares> {
  using MergeSharesBase::MergeSharesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<drt::ProgramOp> program = drt::getProgram(module);
    if (failed(program))
      return signalPassFailure();
    const bool isOne = program->sharesMemory();
    // Servers that serve on their own are in one task, whose variables are the servers'.
    if (isOne || device || isServed(module))
      mergeOwned(module);
    // Of one replica the share is the whole, too.
    if (device ? program->getNumReplicas() > 1 : !isOne)
      return;
    for (auto variable : module.getOps<dfg::VariableOp>()) {
      auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr);
      if (!slice || !variable->hasAttr(dist::kSharesAttr))
        continue;
      auto share = llvm::cast<RankedTensorType>(variable.getType());
      slots[variable.getSymName()] = share.clone(slice.getShape().asArrayRef());
      variable.setType(slots[variable.getSymName()]);
      variable->removeAttr(dist::kSliceAttr);
      variable->removeAttr(dist::kSharesAttr);
    }
    for (auto entry : module.getOps<dfg::FuncOp>())
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
        merge(&op);
  }

  static bool isServed(ModuleOp module) {
    return llvm::any_of(module.getOps<dfg::FuncOp>(),
                        [](dfg::FuncOp entry) { return !entry.getBody().front().getOps<dist::TakeOp>().empty(); });
  }

  /// What tasks own is everyone's: each updates all of it, from the gradient that all have.
  void mergeOwned(ModuleOp module) {
    for (auto variable : module.getOps<dfg::VariableOp>())
      variable->removeAttr(dist::kPlaceAttr);
    for (auto entry : module.getOps<dfg::FuncOp>()) {
      // Only beside updates is a server asked for rows; where none run the table is there.
      const bool pulls = !entry.getBody().front().getOps<dist::PushOp>().empty();
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        op.removeAttr(dist::kPlaceAttr);
        if (auto slices = llvm::dyn_cast<dist::AllGatherSlicesOp>(op))
          slices.removeShardsAttr();
        auto scatter = llvm::dyn_cast<dist::ReduceScatterOp>(op);
        auto gather = llvm::dyn_cast<dist::AllGatherVariablesOp>(op);
        if (scatter && scatter.getOwners())
          reduceWhole(scatter);
        else if (gather && gather.getOwners())
          gather.erase();
        else if (auto pull = llvm::dyn_cast<dist::PullRowsOp>(op); pull && !pulls)
          gatherHere(pull);
      }
    }
  }

  void gatherHere(dist::PullRowsOp pull) {
    OpBuilder builder(pull);
    auto gather = dfg::ResourceGatherOp::create(builder, pull.getLoc(), TypeRange{pull.getRows().getType()},
                                                ValueRange{pull.getHandle(), pull.getIndices()});
    pull.getRows().replaceAllUsesWith(gather->getResult(0));
    pull.erase();
  }

  void reduceWhole(dist::ReduceScatterOp scatter) {
    OpBuilder builder(scatter);
    auto reduce = dist::AllReduceOp::create(builder, scatter.getLoc(), scatter.getReduction(), scatter.getBucket(),
                                            scatter.getGroup(), scatter.getGradients(), scatter.getVariables(),
                                            scatter.getSpec(), dist::CompressionAttr(), dist::AggregatorAttr());
    scatter->replaceAllUsesWith(reduce.getReduced());
    scatter.erase();
  }

  void merge(Operation *op) {
    if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op)) {
      if (auto slot = slots.find(handle.getVariable()); slot != slots.end())
        retype(handle.getHandle(), slot->second);
    } else if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op)) {
      retypeResults(update);
    } else if (llvm::isa<dist::ShareHandleOp, dist::TakeShareOp>(op)) {
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    } else if (auto scatter = llvm::dyn_cast<dist::ReduceScatterOp>(op)) {
      reduceWhole(scatter);
    } else if (llvm::isa<dist::AllGatherVariablesOp>(op)) {
      op->erase();
    }
  }

  llvm::StringMap<RankedTensorType> slots; // the whole's type
};

} // namespace
} // namespace distc

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
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringSet.h"

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
    if (isOne || device)
      mergeOwned(module);
    else if (isServed(module))
      mergeOwned(module, findServed(module));
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

  /// Variables of servers that serve on their own, which are in one task, that no other task accesses: they are asked
  /// for, and nobody else has memory for them. An initial value may be read of another variable, which all tasks have
  /// then, with what is updated together.
  static llvm::StringSet<> findServed(ModuleOp module) {
    const Attribute evaluation = StringAttr::get(module.getContext(), "eval");
    llvm::EquivalenceClasses<llvm::StringRef> together;
    llvm::StringSet<> everyones;
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (variable->hasAttr(dist::kPlaceAttr))
        together.insert(variable.getSymName());
      else
        everyones.insert(variable.getSymName());
    for (auto entry : module.getOps<dfg::FuncOp>()) {
      const bool isServers =
          !entry.getBody().front().getOps<dist::TakeOp>().empty() || entry->getAttr(dfg::kEntryAttr) == evaluation;
      entry.walk([&](Operation *op) {
        auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
        const SmallVector<unsigned> written = update ? update.getWrittenOperands() : SmallVector<unsigned>();
        llvm::StringRef first;
        for (OpOperand &operand : op->getOpOperands()) {
          auto handle =
              dfg::isHandle(operand.get().getType()) ? dfg::getVariableHandle(operand.get()) : dfg::VarHandleOp();
          if (!handle)
            continue;
          const bool isWritten = llvm::is_contained(written, operand.getOperandNumber());
          if (isWritten && !first.empty())
            together.unionSets(first, handle.getVariable());
          if (isWritten)
            first = handle.getVariable();
          const bool asks = llvm::isa<dist::PullOp, dist::PullRowsOp, dfg::IdentityOp>(op);
          const bool isOwners = isServers || asks || (isWritten && op->getParentOp() == entry);
          if (!isOwners)
            everyones.insert(handle.getVariable());
        }
      });
    }
    llvm::StringSet<> served;
    for (const auto *one : together)
      if (one->isLeader() &&
          llvm::none_of(together.members(*one), [&](llvm::StringRef name) { return everyones.contains(name); }))
        for (llvm::StringRef name : together.members(*one))
          served.insert(name);
    return served;
  }

  /// What tasks own, but what is `kept`, is everyone's: each updates all of it, from the gradient that all have.
  void mergeOwned(ModuleOp module, const llvm::StringSet<> &kept = {}) {
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (!kept.contains(variable.getSymName()))
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

//===- AlignShares.cpp - Shares begin where devices want them to ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "passes/lower/Passes.h"
#include "passes/lower/entries/ShareTypes.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_ALIGNSHARES
#include "passes/lower/Passes.h.inc"

void retype(Value value, RankedTensorType type) {
  if (dfg::isHandle(value.getType()))
    value.setType(dfg::RefType::get(value.getContext(), type));
  else
    value.setType(type);
  for (Operation *user : value.getUsers())
    if (llvm::isa<dfg::IdentityOp, dfg::ReadVariableOp>(user))
      retype(user->getResult(0), type);
}

void retypeResults(dfg::UpdateInterface update) {
  Type handle = update->getOperand(update.getWrittenOperands().front()).getType();
  auto ref = llvm::dyn_cast<dfg::RefType>(handle);
  if (auto type = ref ? llvm::dyn_cast<RankedTensorType>(ref.getValueType()) : RankedTensorType())
    for (Value result : update->getResults())
      retype(result, type);
}

RankedTensorType getDeviceShare(RankedTensorType whole, int64_t replicas) {
  constexpr int64_t kShareAlignment = 16;
  Type element = whole.getElementType();
  int64_t step = std::max<int64_t>(kShareAlignment / getElementBytes(element), 1);
  auto share = static_cast<int64_t>(llvm::alignTo(llvm::divideCeil(whole.getNumElements(), replicas), step));
  return RankedTensorType::get({share}, element);
}

namespace {

struct AlignShares : impl::AlignSharesBase<AlignShares> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<drt::ProgramOp> program = drt::getProgram(module);
    if (failed(program))
      return signalPassFailure();
    replicas = program->getNumReplicas();
    for (auto variable : module.getOps<dfg::VariableOp>()) {
      auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr);
      if (!slice || !variable->hasAttr(dist::kSharesAttr))
        continue;
      auto type = llvm::cast<RankedTensorType>(variable.getType());
      RankedTensorType share = getDeviceShare(type.clone(slice.getShape().asArrayRef()), replicas);
      slots[variable.getSymName()] = share;
      variable.setType(share);
    }
    for (auto entry : module.getOps<dfg::FuncOp>())
      for (Operation &op : entry.getBody().front())
        align(&op);
  }

private:
  void align(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](dfg::VarHandleOp handle) {
          if (auto slot = slots.find(handle.getVariable()); slot != slots.end())
            retype(handle.getHandle(), slot->second);
        })
        .Case([&](dist::ShareHandleOp handle) {
          auto whole = llvm::cast<dfg::RefType>(handle.getHandle().getType()).getValueType();
          retype(handle.getShare(), getDeviceShare(llvm::cast<RankedTensorType>(whole), replicas));
        })
        .Case([&](dist::TakeShareOp take) { alignShare(take.getValue(), take.getShare()); })
        .Case([&](dist::ReduceScatterOp scatter) {
          if (!scatter.getOwners())
            for (auto [gradient, share] : llvm::zip(scatter.getGradients(), scatter.getShares()))
              alignShare(gradient, share);
        })
        .Case([&](dfg::UpdateInterface update) { retypeResults(update); });
  }

  void alignShare(Value whole, Value share) {
    retype(share, getDeviceShare(llvm::cast<RankedTensorType>(whole.getType()), replicas));
  }

  int64_t replicas = 1;
  llvm::StringMap<RankedTensorType> slots;
};

} // namespace
} // namespace distc

//===- PlanMemory.cpp - Gives every tensor of an entry its place in the arena ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/EntryBlocks.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/lower/Passes.h.inc"

namespace {

// Every allocation of CUDA's is aligned so.
constexpr int64_t kVariableAlignment = 256;

// A bucket has its members for itself, and what is fetched lies in the arena.
LogicalResult checkPlaced(drt::EntryOp entry) {
  llvm::DenseSet<Value> members;
  for (Operation &op : entry.getBody().front()) {
    if (!isa<drt::AllReduceStartOp, drt::FetchOp>(op))
      continue;
    for (Value operand : op.getOperands()) {
      Value storage = getStorage(operand);
      Operation *producer = storage.getDefiningOp();
      if (!producer || !isPlaced(producer) || (isa<drt::AllReduceStartOp>(op) && !members.insert(storage).second))
        return op.emitOpError("needs a tensor in the arena that no other bucket has; run drt-insert-copies");
    }
  }
  return success();
}

// Elements that variables have room for, where shares of them are gathered.
llvm::StringMap<int64_t> findRoom(ModuleOp module) {
  llvm::StringMap<int64_t> room;
  for (drt::EntryOp entry : getEntries(module))
    for (auto gather : entry.getOps<drt::GatherStartOp>())
      for (auto [name, elements] : llvm::zip(gather.getVariables().getAsRange<FlatSymbolRefAttr>(),
                                             gather.getRoom().value_or(ArrayRef<int64_t>())))
        room[name.getValue()] = std::max(room[name.getValue()], elements);
  return room;
}

// The places of the variables in a replica's block of them; returns its size. What every replica has alike lies in
// front of what it has a share of: one copy gives the former to all.
int64_t placeVariables(ModuleOp module) {
  Builder builder(module.getContext());
  const llvm::StringMap<int64_t> room = findRoom(module);
  int64_t next = 0;
  for (bool inShares : {false, true})
    for (auto variable : module.getOps<drt::VariableOp>()) {
      if (variable.getShares().has_value() != inShares)
        continue;
      auto type = cast<RankedTensorType>(variable.getType());
      int64_t elements = std::max(type.getNumElements(), room.lookup(variable.getSymName()));
      variable.setAtAttr(builder.getI64IntegerAttr(next));
      next += llvm::alignTo(elements * getElementBytes(type.getElementType()), kVariableAlignment);
    }
  return next;
}

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<drt::ProgramOp> program = drt::getProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    int64_t bytes = 0;
    for (drt::EntryOp entry : getEntries(getOperation())) {
      if (failed(checkPlaced(entry)))
        return signalPassFailure();
      EntryBlocks blocks(entry);
      bytes = std::max(bytes, blocks.pack());
      blocks.writePlaces();
    }
    program->setArenaBytes(bytes);
    if (device)
      program->setVariableBytes(placeVariables(getOperation()));
  }
};

} // namespace
} // namespace distc

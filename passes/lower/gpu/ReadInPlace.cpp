//===- ReadInPlace.cpp - Variables that need not be copied to be read ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_READINPLACE
#include "passes/lower/Passes.h.inc"

namespace {

/// Whether the operation writes the variable.
bool updates(Operation &op, FlatSymbolRefAttr variable) {
  auto written = op.getAttrOfType<ArrayAttr>("variables");
  return written && llvm::is_contained(written.getValue(), variable);
}

/// The last operation that reads the tensor, through reshapes; null where it must lie in the arena, or nothing reads
/// it.
Operation *getLastReader(Value tensor) {
  Operation *last = nullptr;
  SmallVector<Value> aliases = {tensor};
  while (!aliases.empty())
    for (Operation *user : aliases.pop_back_val().getUsers()) {
      if (isa<drt::FetchOp, drt::AllReduceStartOp>(user))
        return nullptr;
      if (user->getNumResults() == 1 && getStorage(user->getResult(0)) != user->getResult(0))
        aliases.push_back(user->getResult(0));
      if (!last || last->isBeforeInBlock(user))
        last = user;
    }
  return last;
}

struct ReadInPlace : impl::ReadInPlaceBase<ReadInPlace> {
  void runOnOperation() override {
    for (auto copy : llvm::make_early_inc_range(getOperation().getBody().front().getOps<drt::CopyOp>())) {
      auto read = copy.getInput().getDefiningOp<drt::ReadOp>();
      Operation *last = read ? getLastReader(copy.getResult()) : nullptr;
      if (!last || isUpdatedBetween(read.getVariableAttr(), read, last))
        continue;
      copy.getResult().replaceAllUsesWith(read.getResult());
      copy.erase();
    }
  }

  /// Behind `first` and up to `last`, which may be an update itself.
  static bool isUpdatedBetween(FlatSymbolRefAttr variable, Operation *first, Operation *last) {
    for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
      if (updates(*op, variable))
        return true;
      if (op == last)
        return false;
    }
    return false;
  }
};

} // namespace
} // namespace distc

//===- ControlEdges.cpp - Order around nodes that go --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/tensorflow/ControlEdges.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc {
namespace {

class Inheritance {
public:
  Inheritance(Block &block, const llvm::DenseSet<Operation *> &gone) : block(block), gone(gone) {
    for (Operation &op : block) {
      byName[dfg::getNodeName(&op)] = &op;
      if (auto push = llvm::dyn_cast<dist::PushOp>(op))
        pushes[push.getAccumulator()].push_back(push);
    }
  }

  void run() {
    Builder builder(block.getParent()->getContext());
    for (Operation &op : block) {
      SmallVector<llvm::StringRef> names = dfg::getControlInputs(&op);
      if (gone.contains(&op) || llvm::none_of(names, [&](llvm::StringRef name) { return isGone(byName.lookup(name)); }))
        continue;
      llvm::SetVector<llvm::StringRef> kept;
      llvm::DenseSet<Operation *> seen;
      for (llvm::StringRef name : names)
        if (!isGone(byName.lookup(name)))
          kept.insert(name);
      for (llvm::StringRef name : names)
        if (Operation *before = byName.lookup(name); isGone(before))
          collect(before, seen, kept);
      kept.remove(dfg::getNodeName(&op));
      if (kept.empty())
        op.removeAttr(dfg::kControlAttr);
      else
        op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(kept.getArrayRef()));
    }
  }

private:
  bool isGone(Operation *op) const { return op && gone.contains(op); }

  /// The nearest nodes before `from` that stay.
  void collect(Operation *from, llvm::DenseSet<Operation *> &seen, llvm::SetVector<llvm::StringRef> &into) {
    SmallVector<Operation *> pending = {from};
    auto visit = [&](Operation *op) {
      if (!op || !seen.insert(op).second || llvm::isa<dfg::ConstOp, dfg::VarHandleOp, dfg::PlaceholderOp>(op))
        return;
      if (isGone(op))
        pending.push_back(op);
      else if (llvm::StringRef name = dfg::getNodeName(op); !name.empty())
        into.insert(name);
    };
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      for (Value operand : op->getOperands())
        visit(operand.getDefiningOp());
      for (llvm::StringRef name : dfg::getControlInputs(op))
        visit(byName.lookup(name));
      if (auto take = llvm::dyn_cast<dist::TakeOp>(op))
        llvm::for_each(pushes.lookup(take.getAccumulator()), visit);
    }
  }

  Block &block;
  const llvm::DenseSet<Operation *> &gone;
  llvm::StringMap<Operation *> byName;
  llvm::StringMap<SmallVector<Operation *>> pushes; // by accumulator
};

} // namespace

void inheritControl(Block &block, const llvm::DenseSet<Operation *> &gone) {
  if (!gone.empty())
    Inheritance(block, gone).run();
}

} // namespace distc

//===- BucketOrder.cpp - Which nodes wait for which reductions --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/BucketOrder.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc {
namespace {

/// Waves of the last write of a variable and of the reads since.
struct Accesses {
  unsigned write = 0, read = 0;
};

/// What a handle names: its variable, or the value itself where that is not known.
const void *getVariable(Value handle) {
  if (dfg::VarHandleOp named = dfg::getVariableHandle(handle))
    return named.getVariableAttr().getAsOpaquePointer();
  return handle.getAsOpaquePointer();
}

bool writes(Operation *op, unsigned operand) {
  if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
    return llvm::is_contained(update.getWrittenOperands(), operand);
  // Identities pass a handle on; what is not known may write.
  return llvm::isa<dfg::OpaqueOp, dfg::CallOp>(op);
}

} // namespace

llvm::DenseMap<Operation *, unsigned> findWaves(Block &block, FindReduction findReduction,
                                                const llvm::DenseSet<Operation *> &consumers) {
  // Of the nodes behind the first wave, the rest is 0.
  llvm::DenseMap<Operation *, unsigned> waves;
  llvm::DenseMap<Attribute, unsigned> named;
  llvm::DenseMap<const void *, Accesses> variables;
  for (Operation &op : block) {
    unsigned wave = 0;
    bool consumes = consumers.contains(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      if (Operation *def = operand.get().getDefiningOp()) {
        unsigned made = waves.lookup(def);
        std::optional<unsigned> reduced = consumes ? findReduction(&op, operand.get(), made) : std::nullopt;
        wave = std::max(wave, reduced ? *reduced + 1 : made);
      }
      if (!dfg::isHandle(operand.get().getType()))
        continue;
      const Accesses &accesses = variables[getVariable(operand.get())];
      wave = std::max({wave, accesses.write, writes(&op, operand.getOperandNumber()) ? accesses.read : 0});
    }
    for (Attribute name : dfg::getControl(&op))
      wave = std::max(wave, named.lookup(name));
    if (wave > 0) {
      waves[&op] = wave;
      if (StringAttr name = dfg::getNodeNameAttr(&op))
        named[name] = wave;
    }
    if (llvm::isa<dfg::VarHandleOp, dfg::IdentityOp>(op))
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!dfg::isHandle(operand.get().getType()))
        continue;
      Accesses &accesses = variables[getVariable(operand.get())];
      if (writes(&op, operand.getOperandNumber()))
        accesses = {wave, wave};
      else
        accesses.read = std::max(accesses.read, wave);
    }
  }
  return waves;
}

SmallVector<SmallVector<Operation *>> sortIntoWaves(Block &block, const llvm::DenseMap<Operation *, unsigned> &waves) {
  SmallVector<SmallVector<Operation *>> order(1);
  for (Operation &op : block) {
    unsigned wave = waves.lookup(&op);
    if (wave >= order.size())
      order.resize(wave + 1);
    order[wave].push_back(&op);
  }
  return order;
}

} // namespace distc

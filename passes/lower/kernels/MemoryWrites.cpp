//===- MemoryWrites.cpp - When memory changes that a value is --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/MemoryWrites.h"
#include "dialects/drt/Drt.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

MemoryWrites::MemoryWrites(Block &block) {
  llvm::DenseMap<int64_t, ArrayAttr> gathered;
  for (Operation &op : block) {
    const unsigned position = positions.size();
    positions[&op] = position;
    if (!llvm::isa<drt::DRTDialect>(op.getDialect()) || isMemoryEffectFree(&op) || llvm::isa<drt::ReadOp>(op))
      continue;
    if (auto start = llvm::dyn_cast<drt::AllReduceStartOp>(op))
      for (Value gradient : start.getGradients())
        ofValues[getStorage(gradient)].push_back(position);
    if (auto gather = llvm::dyn_cast<drt::GatherStartOp>(op))
      gathered[gather.getBucket()] = gather.getVariables();
    if (auto wait = llvm::dyn_cast<drt::AllReduceWaitOp>(op))
      if (ArrayAttr variables = gathered.lookup(wait.getBucket()))
        addVariables(variables, position);
    if (auto variables = op.getAttrOfType<ArrayAttr>("variables"))
      addVariables(variables, position);
  }
}

bool MemoryWrites::isUnchanged(Operation *op, Operation *later) const {
  SetVector<Value> read(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, read);
  return llvm::all_of(read, [&](Value value) { return isUnchanged(value, op, later); });
}

bool MemoryWrites::isUnchanged(Value value, Operation *op, Operation *later) const {
  Value storage = getStorage(value);
  const SmallVector<unsigned> *writes = nullptr;
  if (auto variable = storage.getDefiningOp<drt::ReadOp>()) {
    if (auto found = ofVariables.find(variable.getVariableAttr().getAttr()); found != ofVariables.end())
      writes = &found->second;
  } else if (auto found = ofValues.find(storage); found != ofValues.end()) {
    writes = &found->second;
  }
  if (!writes)
    return true;
  auto next = llvm::upper_bound(*writes, positions.at(op));
  return next == writes->end() || *next >= positions.at(later);
}

void MemoryWrites::addVariables(ArrayAttr variables, unsigned position) {
  variables.walk([&](FlatSymbolRefAttr variable) { ofVariables[variable.getAttr()].push_back(position); });
}

} // namespace distc

//===- TaskMemory.cpp - What a task's replicas keep in memory ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/TaskMemory.h"

#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

TaskMemory getTaskMemory(drt::ProgramOp program) {
  TaskMemory most;
  for (int64_t replicas : program.getTaskReplicas())
    most.replicas = std::max(most.replicas, replicas);
  llvm::DenseMap<int64_t, int64_t> owned; // bytes that one task alone holds
  for (auto variable : program->getParentOfType<ModuleOp>().getOps<drt::VariableOp>()) {
    const int64_t bytes = getTensorBytes(cast<RankedTensorType>(variable.getType()));
    if (std::optional<int64_t> owner = variable.getOwner())
      owned[*owner] += bytes;
    else
      most.variables += variable.getShares() ? most.replicas * bytes : bytes;
  }
  int64_t mostOwned = 0;
  for (auto [owner, bytes] : owned)
    mostOwned = std::max(mostOwned, bytes);
  most.variables += mostOwned;
  return most;
}

} // namespace distc

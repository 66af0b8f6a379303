//===- shares.cpp - Gradients and variables in shares, between tasks ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A share is ceil(n / N) elements, flat; a task has those of its replicas, side by
// side. What a parameter server would hold is one task's alone, its owner's.
//
//===----------------------------------------------------------------------===//
#include "core/shares.h"
#include "cpu/task.h"

#include <cstring>

namespace drt {

Range CpuTask::partOf(int32_t rank, const drt_member &member) const {
  if (member.owner > 0)
    return {0, member.owner - 1 == rank ? member.count : 0};
  return layout_.shareOf(layout_.tasks[rank], member.count);
}

void CpuTask::gatherShares(int32_t index, void *whole) {
  const drt_variable &variable = program_.variables[index];
  if (variable.owner > 0)
    return gatherOwned(variable, index, whole);
  if (communicator_)
    drain();
  drt::gatherShares(variable, layout_, communicator_, variables_[index], whole);
}

// The owner's, to whoever gives room for it.
void CpuTask::gatherOwned(const drt_variable &variable, int32_t index, void *whole) {
  const bool isOwner = isTask(variable.owner - 1);
  void *data = isOwner ? variables_[index] : whole;
  if (!data) {
    shares_.resize(variable.bytes);
    data = shares_.data();
  }
  if (communicator_) {
    drain();
    communicator_->describe(0, variable.name);
    communicator_->broadcast(data, variable.bytes, variable.owner - 1);
  }
  if (isOwner && whole)
    std::memcpy(whole, data, variable.bytes);
}

void CpuTask::scatterShares(int32_t index, void *whole) {
  const drt_variable &variable = program_.variables[index];
  if (communicator_)
    drain();
  if (variable.owner == 0)
    return drt::scatterShares(variable, layout_, communicator_, whole, variables_[index]);
  if (communicator_) {
    communicator_->describe(0, variable.name);
    communicator_->broadcast(whole, variable.bytes, 0);
  }
  if (isTask(variable.owner - 1))
    std::memcpy(variables_[index], whole, variable.bytes);
}

} // namespace drt

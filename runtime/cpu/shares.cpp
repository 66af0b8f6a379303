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
#include "core/dtype.h"
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
  const int64_t size = dtypeSize(variable.type.dtype);
  const int64_t count = elementCount({variable.type.dtype, variable.full_rank, variable.full_shape});
  const char *all = static_cast<const char *>(variables_[index]);
  const int64_t block = variable.bytes * layout_.mostReplicas();
  if (communicator_) {
    drain();
    shares_.resize(block);
    allShares_.resize(block * layout_.numTasks());
    std::memcpy(shares_.data(), variables_[index], variable.bytes * config_.localReplicas);
    communicator_->describe(0, variable.name);
    communicator_->all_gather(shares_.data(), block, allShares_.data());
    all = allShares_.data();
  }
  if (!whole)
    return;
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank) {
    const Range part = layout_.shareOf(layout_.tasks[rank], count);
    if (!part.empty())
      std::memcpy(static_cast<char *>(whole) + part.begin * size, all + rank * block, part.size() * size);
  }
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
  const int64_t size = dtypeSize(variable.type.dtype);
  const int64_t count = variable.owner > 0
                            ? variable.bytes / size
                            : elementCount({variable.type.dtype, variable.full_rank, variable.full_shape});
  if (communicator_) {
    drain();
    communicator_->describe(0, variable.name);
    communicator_->broadcast(whole, count * size, 0);
  }
  if (variable.owner > 0) {
    if (isTask(variable.owner - 1))
      std::memcpy(variables_[index], whole, variable.bytes);
    return;
  }
  const Range part = layout_.shareOf(layout_.own(), count);
  if (!part.empty())
    std::memcpy(variables_[index], static_cast<const char *>(whole) + part.begin * size, part.size() * size);
}

} // namespace drt

//===- shares.cpp - Gradients and variables in shares, between tasks ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A share is ceil(n / N) elements, flat; a task has those of its replicas, side by
// side. Every task sends as much as the one with most replicas: the others' blocks
// are not full.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cpu/reduce.h"
#include "cpu/task.h"

#include <cstring>

namespace drt {

// Each task's part of every member to that task, which sums them in the order of tasks: (T-1)/T of the bytes, as much
// as any reduce-scatter sends.
void CpuTask::reduceScatter(const drt_bucket &plan, char *data) {
  const int64_t size = dtypeSize(plan.dtype), most = layout_.mostReplicas();
  int64_t block = 0; // elements
  for (int32_t m = 0; m < plan.num_members; ++m)
    block += layout_.share(plan.members[m].count) * most;
  shares_.resize(block * size * layout_.numTasks());
  allShares_.resize(shares_.size());
  const auto forEachPart = [&](int32_t rank, char *at, auto move) {
    for (int32_t m = 0; m < plan.num_members; ++m) {
      const drt_member &member = plan.members[m];
      const Range part = layout_.shareOf(layout_.tasks[rank], member.count);
      if (!part.empty())
        move(at, data + (member.offset + part.begin) * size, part.size() * size);
      at += layout_.share(member.count) * most * size;
    }
  };
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
    forEachPart(rank, shares_.data() + rank * block * size,
                [](char *to, const char *from, int64_t bytes) { std::memcpy(to, from, bytes); });
  communicator_->all_to_all(shares_.data(), block * size, allShares_.data());
  reduce(static_cast<drt_dtype>(plan.dtype), allShares_.data(), {allShares_.data(), block * size, layout_.numTasks()},
         block, 1);
  forEachPart(layout_.rank, allShares_.data(),
              [](const char *from, char *to, int64_t bytes) { std::memcpy(to, from, bytes); });
}

void CpuTask::gatherVariables(const drt_bucket &plan) {
  const int64_t most = layout_.mostReplicas();
  int64_t block = 0; // bytes
  for (int32_t m = 0; m < plan.num_members; ++m)
    block +=
        layout_.share(plan.members[m].count) * most * dtypeSize(program_.variables[plan.members[m].offset].type.dtype);
  shares_.resize(block);
  allShares_.resize(block * layout_.numTasks());
  const auto forEachPart = [&](int32_t rank, char *at, auto move) {
    for (int32_t m = 0; m < plan.num_members; ++m) {
      const drt_member &member = plan.members[m];
      const int64_t size = dtypeSize(program_.variables[member.offset].type.dtype);
      const Range part = layout_.shareOf(layout_.tasks[rank], member.count);
      if (!part.empty())
        move(at, static_cast<char *>(variables_[member.offset]) + part.begin * size, part.size() * size);
      at += layout_.share(member.count) * most * size;
    }
  };
  forEachPart(layout_.rank, shares_.data(),
              [](char *to, const char *from, int64_t bytes) { std::memcpy(to, from, bytes); });
  communicator_->all_gather(shares_.data(), block, allShares_.data());
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
    if (rank != layout_.rank)
      forEachPart(rank, allShares_.data() + rank * block,
                  [](const char *from, char *to, int64_t bytes) { std::memcpy(to, from, bytes); });
}

void CpuTask::gatherShares(int32_t index, void *whole) {
  const drt_variable &variable = program_.variables[index];
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

void CpuTask::scatterShares(int32_t index, void *whole) {
  const drt_variable &variable = program_.variables[index];
  const int64_t size = dtypeSize(variable.type.dtype);
  const int64_t count = elementCount({variable.type.dtype, variable.full_rank, variable.full_shape});
  if (communicator_) {
    drain();
    communicator_->describe(0, variable.name);
    communicator_->broadcast(whole, count * size, 0);
  }
  const Range part = layout_.shareOf(layout_.own(), count);
  if (!part.empty())
    std::memcpy(variables_[index], static_cast<const char *>(whole) + part.begin * size, part.size() * size);
}

} // namespace drt

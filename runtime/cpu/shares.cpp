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
#include "cpu/reduce.h"
#include "cpu/task.h"

#include <cstring>
#include <numeric>

namespace drt {

Range CpuTask::partOf(int32_t rank, const drt_member &member) const {
  if (member.owner > 0)
    return {0, member.owner - 1 == rank ? member.count : 0};
  return layout_.shareOf(layout_.tasks[rank], member.count);
}

// Each task's part of every member to that task, which adds its own to what the others sent, in the order of tasks:
// (T-1)/T of the bytes, as much as any reduce-scatter sends. What stays here is copied once, beside what arrives.
void CpuTask::reduceScatter(const drt_bucket &plan, char *data) {
  const int64_t size = dtypeSize(plan.dtype);
  const int32_t tasks = layout_.numTasks(), self = layout_.rank;
  const auto forEachPart = [&](int32_t rank, int64_t at, auto visit) {
    for (int32_t m = 0; m < plan.num_members; ++m)
      if (const Range part = partOf(rank, plan.members[m]); !part.empty()) {
        visit(at, data + (plan.members[m].offset + part.begin) * size, part.size());
        at += part.size() * size;
      }
    return at;
  };
  const auto skip = [](int64_t, char *, int64_t) {};
  const int64_t own = forEachPart(self, 0, skip);
  std::vector<int64_t> to(tasks, 0), from(tasks, own);
  from[self] = 0;
  int64_t sent = 0;
  for (int32_t rank = 0; rank < tasks; ++rank)
    if (rank != self)
      sent += to[rank] = forEachPart(rank, 0, skip);
  shares_.resize(sent);
  allShares_.resize(own * tasks);
  int64_t at = 0;
  for (int32_t rank = 0; rank < tasks; ++rank)
    if (rank != self)
      at = forEachPart(rank, at, [&](int64_t to, const char *part, int64_t count) {
        std::memcpy(shares_.data() + to, part, count * size);
      });
  forEachPart(self, own * (tasks - 1), [&](int64_t to, const char *part, int64_t count) {
    std::memcpy(allShares_.data() + to, part, count * size);
  });
  communicator_->all_to_all(shares_.data(), to, allShares_.data(), from);
  forEachPart(self, 0, [&](int64_t at, char *part, int64_t count) {
    reduce(static_cast<drt_dtype>(plan.dtype), part, {allShares_.data() + at, own, tasks}, count, 1);
  });
}

void CpuTask::gatherVariables(const drt_bucket &plan) {
  const auto forEachPart = [&](int32_t rank, int64_t at, auto visit) {
    for (int32_t m = 0; m < plan.num_members; ++m) {
      const drt_member &member = plan.members[m];
      const int64_t size = dtypeSize(program_.variables[member.offset].type.dtype);
      if (const Range part = partOf(rank, member); !part.empty()) {
        visit(at, static_cast<char *>(variables_[member.offset]) + part.begin * size, part.size() * size);
        at += part.size() * size;
      }
    }
    return at;
  };
  std::vector<int64_t> bytes(layout_.numTasks());
  int64_t all = 0;
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
    all += bytes[rank] = forEachPart(rank, 0, [](int64_t, char *, int64_t) {});
  allShares_.resize(all);
  const auto own = bytes.begin() + layout_.rank;
  forEachPart(layout_.rank, std::accumulate(bytes.begin(), own, int64_t(0)),
              [&](int64_t at, const char *part, int64_t count) { std::memcpy(allShares_.data() + at, part, count); });
  communicator_->all_gather(allShares_.data(), bytes);
  int64_t at = 0;
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
    at = forEachPart(rank, at, [&](int64_t from, char *part, int64_t count) {
      if (rank != layout_.rank)
        std::memcpy(part, allShares_.data() + from, count);
    });
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
  const int64_t count =
      variable.owner > 0 ? variable.bytes / size
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

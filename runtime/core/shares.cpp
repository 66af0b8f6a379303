//===- shares.cpp - Variables that replicas hold in shares ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/shares.h"
#include "core/dtype.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace drt {
namespace {

// The bytes of the whole that a task has: its own variable's, or those of its replicas' shares without what pads the
// last ones.
Range heldBytes(const drt_variable &variable, const Layout &layout, int32_t rank, bool isAlone) {
  const int64_t all = wholeBytes(variable);
  if (variable.owner > 0)
    return {0, isAlone || rank == variable.owner - 1 ? all : 0};
  const Layout::Task &task = layout.tasks[static_cast<size_t>(rank)];
  return {std::min(task.firstReplica * variable.bytes, all),
          std::min((task.firstReplica + task.replicas) * variable.bytes, all)};
}

Range common(Range a, Range b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// How much of a range each task has. What lies side by side in the whole lies so in what is exchanged: tasks have their
// parts in the order of ranks.
std::vector<int64_t> bytesOfEach(const drt_variable &variable, const Layout &layout, Range range) {
  std::vector<int64_t> bytes;
  for (int32_t rank = 0; rank < layout.numTasks(); ++rank)
    bytes.push_back(common(heldBytes(variable, layout, rank, false), range).size());
  return bytes;
}

// What this task has of a range: where it lies in its own memory.
Range ownBytes(const drt_variable &variable, const Layout &layout, bool isAlone, Range range) {
  const Range held = heldBytes(variable, layout, layout.rank, isAlone), part = common(held, range);
  return {part.begin - held.begin, part.end - held.begin};
}

} // namespace

int64_t wholeBytes(const drt_variable &variable) {
  if (variable.shares == 0)
    return variable.bytes;
  return elementCount({variable.type.dtype, variable.full_rank, variable.full_shape}) * dtypeSize(variable.type.dtype);
}

void gatherPart(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *own,
                Range range, void *part) {
  const Range mine = ownBytes(variable, layout, !communicator, range);
  const char *from = static_cast<const char *>(own) + mine.begin;
  if (!communicator) {
    std::memcpy(part, from, static_cast<size_t>(mine.size()));
    return;
  }
  const auto tasks = static_cast<size_t>(layout.numTasks());
  std::vector<int64_t> sent(tasks, 0), received(tasks, 0);
  sent[0] = mine.size();
  if (layout.rank == 0)
    received = bytesOfEach(variable, layout, range);
  communicator->describe(0, variable.name);
  communicator->all_to_all(from, sent, part, received);
}

void scatterPart(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *part,
                 Range range, void *own) {
  const Range mine = ownBytes(variable, layout, !communicator, range);
  char *to = static_cast<char *>(own) + mine.begin;
  if (!communicator) {
    std::memcpy(to, part, static_cast<size_t>(mine.size()));
    return;
  }
  const auto tasks = static_cast<size_t>(layout.numTasks());
  std::vector<int64_t> sent(tasks, 0), received(tasks, 0);
  received[0] = mine.size();
  if (layout.rank == 0)
    sent = bytesOfEach(variable, layout, range);
  communicator->describe(0, variable.name);
  communicator->all_to_all(part, sent, to, received);
}

Layout findLayout(Communicator *communicator, int32_t firstReplica, int32_t localReplicas, int32_t numReplicas) {
  Layout layout;
  layout.numReplicas = numReplicas;
  const Layout::Task own = {firstReplica, localReplicas};
  layout.tasks = {own};
  if (!communicator)
    return layout;
  layout.rank = communicator->rank();
  layout.tasks.resize(static_cast<size_t>(communicator->size()));
  communicator->describe(0, "the replicas of each task");
  communicator->all_gather(&own, sizeof own, layout.tasks.data());
  return layout;
}

} // namespace drt

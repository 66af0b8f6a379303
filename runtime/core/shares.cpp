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

int64_t wholeBytes(const drt_variable &variable) {
  return elementCount({variable.type.dtype, variable.full_rank, variable.full_shape}) * dtypeSize(variable.type.dtype);
}

// The bytes of the whole that a task has: those of its replicas' shares, without what pads the last ones.
Range bytesOf(const Layout::Task &task, const drt_variable &variable) {
  const int64_t all = wholeBytes(variable);
  return {std::min(task.firstReplica * variable.bytes, all),
          std::min((task.firstReplica + task.replicas) * variable.bytes, all)};
}

} // namespace

void gatherShares(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *own,
                  void *whole) {
  const int64_t block = variable.bytes * layout.mostReplicas();
  std::vector<char> sent, all;
  const char *from = static_cast<const char *>(own);
  if (communicator) {
    sent.resize(static_cast<size_t>(block));
    all.resize(static_cast<size_t>(block * layout.numTasks()));
    std::memcpy(sent.data(), own, static_cast<size_t>(variable.bytes * layout.own().replicas));
    communicator->describe(0, variable.name);
    communicator->all_gather(sent.data(), block, all.data());
    from = all.data();
  }
  if (!whole)
    return;
  for (int32_t rank = 0; rank < layout.numTasks(); ++rank) {
    const Range part = bytesOf(layout.tasks[static_cast<size_t>(rank)], variable);
    if (!part.empty())
      std::memcpy(static_cast<char *>(whole) + part.begin, from + rank * block, static_cast<size_t>(part.size()));
  }
}

void scatterShares(const drt_variable &variable, const Layout &layout, Communicator *communicator, void *whole,
                   void *own) {
  if (communicator) {
    communicator->describe(0, variable.name);
    communicator->broadcast(whole, wholeBytes(variable), 0);
  }
  const Range part = bytesOf(layout.own(), variable);
  if (!part.empty())
    std::memcpy(own, static_cast<const char *>(whole) + part.begin, static_cast<size_t>(part.size()));
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

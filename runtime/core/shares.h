//===- shares.h - Variables that replicas hold in shares ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_SHARES_H
#define DRT_CORE_SHARES_H

#include "collectives/communicator.h"
#include "core/layout.h"
#include "drt/drt.h"

namespace drt {

/// A share is drt_variable.bytes long, flat; a task has those of its replicas, side by side, and the whole has no
/// padding. Every task calls these at the same time. `communicator`: null where there is one task.

/// From each task's `own` shares to `whole`, in the tasks that want it: null in others.
void gatherShares(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *own,
                  void *whole);
/// From task 0's `whole`, which must be there in every task and is overwritten, to each task's `own` shares.
void scatterShares(const drt_variable &variable, const Layout &layout, Communicator *communicator, void *whole,
                   void *own);

/// The layout of all tasks, which they tell each other.
Layout findLayout(Communicator *communicator, int32_t firstReplica, int32_t localReplicas, int32_t numReplicas);

} // namespace drt

#endif // DRT_CORE_SHARES_H

//===- shares.h - Variables that replicas hold in shares ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_SHARES_H
#define DRT_CORE_SHARES_H

#include "collectives/communicator.h"
#include "core/layout.h"
#include "core/ranges.h"
#include "drt/drt.h"

namespace drt {

/// Bytes of a variable that the tasks hold in shares, or that its owner alone has, as a whole.
int64_t wholeBytes(const drt_variable &variable);

/// A share is drt_variable.bytes long, flat; a task has those of its replicas, side by side, and the whole has no
/// padding. Every task calls these at the same time, with the same range of the whole's bytes. `communicator`: null
/// where there is one task, which has all. Tasks need memory for the range alone.

/// From each task's `own` part to `part`, in task 0; null in others.
void gatherPart(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *own,
                Range range, void *part);
/// From task 0's `part` to each task's `own`.
void scatterPart(const drt_variable &variable, const Layout &layout, Communicator *communicator, const void *part,
                 Range range, void *own);

/// The layout of all tasks, which they tell each other.
Layout findLayout(Communicator *communicator, int32_t firstReplica, int32_t localReplicas, int32_t numReplicas);

} // namespace drt

#endif // DRT_CORE_SHARES_H

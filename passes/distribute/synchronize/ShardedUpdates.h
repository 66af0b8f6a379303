//===- ShardedUpdates.h - Each replica updates its share of a variable -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SHARDEDUPDATES_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SHARDEDUPDATES_H

#include "passes/distribute/strategy/SyncPolicy.h"
#include "strategies/StepNodes.h"

namespace distc {

/// Splits updates of variables whose entry has a sharded stage, after gradients are synchronized (Rajbhandari et al.,
/// ZeRO, 2020): slots become variables of a share's size, values are gathered behind the updates of a group. What
/// cannot be split stays as it is, with a remark.
void shardUpdates(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step);

/// Numbers the graph's collectives in the order in which they are issued.
void numberBuckets(dfg::GraphOp graph);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SHARDEDUPDATES_H

//===- OwnRows.h - Rows of shards are chosen before they are pushed -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_OWNROWS_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_OWNROWS_H

#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/strategy/SyncPolicy.h"

namespace distc {

/// Of a sparse gradient whose shards are on several servers, replicas choose each shard's rows right where backward
/// made them, and what follows (the optimizer's deduplication) happens once a shard: then nobody needs the rows of all
/// shards. Where something in between mixes rows (a norm), all stays as it is. Returns whether anything changed; `flow`
/// is not that of the graph any more then.
bool chooseOwnRowsFirst(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_OWNROWS_H

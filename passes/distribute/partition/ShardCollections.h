//===- ShardCollections.h - Split variables in a graph's collections -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDCOLLECTIONS_H
#define DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDCOLLECTIONS_H

#include "passes/distribute/partition/Shards.h"

namespace distc {

/// Gives the collections of variables that the graph keeps for export (`collections`) an entry a shard, with its slice,
/// instead of one for the whole. The graph's nodes are split already.
void splitCollections(dfg::GraphOp graph, const Shards &shards);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDCOLLECTIONS_H

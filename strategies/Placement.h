//===- Placement.h - Which server a shard goes to -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_PLACEMENT_H
#define DISTC_STRATEGIES_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace distc::strategies {

/// Chooses servers, which are numbers from 0 on, for variables in their order.
class Placement {
public:
  virtual ~Placement() = default;

  /// A server for each shard of a variable; a whole variable is one shard. `bytes` has the size of each.
  virtual llvm::SmallVector<int> place(llvm::StringRef variable, llvm::ArrayRef<int64_t> bytes) = 0;
};

/// Everything on server 0.
std::unique_ptr<Placement> makeSinglePlacement();

/// The shards of a variable on the servers that have the fewest bytes, the first of equals first; round again in the
/// same order where shards outnumber servers. As AutoDist does, and TensorFlow's GreedyLoadBalancingStrategy with
/// byte_size_load_fn. O(log servers) a shard.
std::unique_ptr<Placement> makeGreedyPlacement(int servers);

/// One server after the other, as TensorFlow's replica_device_setter.
std::unique_ptr<Placement> makeRoundRobinPlacement(int servers);

/// By a hash of the shard's name: a variable stays where it is when others come and go.
std::unique_ptr<Placement> makeHashPlacement(int servers);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_PLACEMENT_H

//===- SyncPolicy.h - How a strategy synchronizes each variable -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_STRATEGY_SYNCPOLICY_H
#define DISTC_PASSES_DISTRIBUTE_STRATEGY_SYNCPOLICY_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace distc {

struct AppliedStrategy;

/// What becomes of a variable's gradients.
struct SyncPolicy {
  /// The strategy's group, -1 where it has no entry for the variable (statistics).
  int group = -1;
  dist::Spec spec = dist::Spec::Auto;
  dist::CompressionAttr compression;
  dist::AggregatorAttr aggregator;
  /// What the strategy fixes; none: as the loss was.
  std::optional<dist::Reduction> reduction;
  /// 0: every replica updates all of it.
  int shardedStage = 0;
  /// The server that holds it; null: every worker has it.
  dist::PlaceAttr place;
  /// The worker that updates it for all, where servers share workers' processes (dist-colocate-servers); null: none.
  dist::PlaceAttr owner;
  bool async = false, proxy = false;
  int64_t staleness = 0;
};

/// What the module's strategy, topology and places say, read once.
class SyncPolicies {
public:
  /// Fails with a diagnostic where `module` has no strategy or topology.
  static llvm::FailureOr<SyncPolicies> read(mlir::ModuleOp module);

  const SyncPolicy &get(llvm::StringRef variable) const {
    auto it = variables.find(variable);
    return it == variables.end() ? none : it->second;
  }
  /// Whether the strategy has an entry for it.
  bool hasEntry(llvm::StringRef variable) const { return entries.contains(variable); }
  /// What the strategy fixes for the gradients of all variables alike; none where it does not.
  std::optional<dist::Reduction> getCommonReduction() const;
  void setPlace(llvm::StringRef variable, dist::PlaceAttr place);

  int64_t replicas = 1;
  /// Gradients that make an update on a server.
  int64_t required = 1;
  int64_t accumulateSteps = 1;
  /// 0: no averages are kept.
  double averagesDecay = 0;
  /// Whether a replica's step waits for the servers' updates, and how far ahead it may be; whether some do not wait at
  /// all.
  bool hasSync = false, hasAsync = false;
  /// Whether servers in the replicas' process serve on their own: a replica has nothing that its updates leave when it
  /// pushes its gradients.
  bool serves = false;
  /// Whether replicas update a share of a variable each, or a worker updates some alone.
  bool hasShares = false, hasOwners = false;
  int64_t staleness = 0;

  /// Groups for the gradients that go to owners, of at most 4 MiB or one variable's between tasks, behind those that
  /// the strategy has; and where others travel, none of more than `bucketBytes` bytes, unless it is one gradient's: the
  /// first can be on their way while the last are computed. They travel between tasks, or where `eachApart` between all
  /// replicas. 0: as the strategy has them.
  void formBuckets(mlir::ModuleOp module, AppliedStrategy &applied, int64_t bucketBytes, bool eachApart);

private:
  llvm::StringMap<SyncPolicy> variables;
  llvm::StringSet<> entries;
  SyncPolicy none;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_STRATEGY_SYNCPOLICY_H

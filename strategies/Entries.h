//===- Entries.h - What builders write for a variable -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_ENTRIES_H
#define DISTC_STRATEGIES_ENTRIES_H

#include "strategies/Builder.h"
#include "strategies/Placement.h"
#include "strategies/Splits.h"

namespace distc::strategies {

/// sync, staleness, local_proxy_variable: of builders that put variables on servers.
std::vector<Parameter> getServerParameters();

/// chunk_size, bucket_mb, spec, compressor and the compressors' own: of builders that all-reduce. `bucketMb` is the
/// default of bucket_mb.
std::vector<Parameter> getAllReduceParameters(llvm::StringRef bucketMb = "0");

/// max_shards: of builders whose number of shards is a divisor.
std::vector<Parameter> getDivisorParameters();

/// Those for servers, and placement: of TensorFlow's partitioners.
std::vector<Parameter> getPlacedPartsParameters();
/// The placement that `placement` asks for.
std::unique_ptr<Placement> makeAskedPlacement(const BuildState &build);

/// Both, one after the other.
std::vector<Parameter> join(std::vector<Parameter> first, const std::vector<Parameter> &second);

/// Writes the entries of a strategy as its parameters ask.
class Entries {
public:
  /// `placement` says where variables go that are added to servers.
  explicit Entries(BuildState &build, std::unique_ptr<Placement> placement = nullptr);

  void addToServers(const VariableFacts &variable, Split split = Split::whole());
  /// `shardedStage`: as in the schema.
  void addAllReduced(const VariableFacts &variable, Split split = Split::whole(), int shardedStage = 0);

  /// Numbers the groups, once all are added, and tells of variables that could not be split.
  void finish();

private:
  /// A gradient that is all-reduced, in a group with those of the same kind alone.
  struct Reduced {
    autodist::proto::AllReduceSynchronizer *synchronizer;
    const VariableFacts *variable;
    int64_t bytes;
  };

  /// The variable's node, or those of its shards, and the bytes of each.
  std::pair<llvm::SmallVector<Strategy::Node *>, llvm::SmallVector<int64_t>> addNodes(const VariableFacts &variable,
                                                                                      Split split);
  void numberGroups();

  BuildState &build;
  std::unique_ptr<Placement> placement;
  std::vector<std::string> destinations;
  std::vector<Reduced> reduced;
  std::vector<llvm::StringRef> leftWhole;
};

/// A builder's whole work where all variables go to servers, or are all all-reduced, split by `split`.
template <typename SplitFunction>
llvm::Error addAllToServers(BuildState &build, std::unique_ptr<Placement> placement, SplitFunction split) {
  Entries entries(build, std::move(placement));
  for (const VariableFacts &variable : build.facts.variables)
    if (variable.needsStrategy())
      entries.addToServers(variable, split(variable));
  entries.finish();
  return llvm::Error::success();
}
template <typename SplitFunction> llvm::Error allReduceAll(BuildState &build, SplitFunction split) {
  Entries entries(build);
  for (const VariableFacts &variable : build.facts.variables)
    if (variable.needsStrategy())
      entries.addAllReduced(variable, split(variable));
  entries.finish();
  return llvm::Error::success();
}

inline Split keepWhole(const VariableFacts &) { return Split::whole(); }

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_ENTRIES_H

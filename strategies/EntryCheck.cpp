//===- EntryCheck.cpp - Whether the entries of a strategy are right -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Aggregators.h"
#include "strategies/Compressors.h"
#include "strategies/Destinations.h"
#include "strategies/Partition.h"
#include "strategies/StrategyCheck.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace distc::strategies {
namespace {

using autodist::proto::PSSynchronizer;

/// What all gradients of a group must have in common.
std::string describeKind(const AllReduceSynchronizer &synchronizer, llvm::StringRef type) {
  std::string text = (type + ", " + AllReduceSynchronizer::Spec_Name(synchronizer.spec()) + ", compressor " +
                      printCompressor(synchronizer.compressor()))
                         .str();
  if (synchronizer.power_sgd_rank())
    text += " of rank " + std::to_string(synchronizer.power_sgd_rank());
  if (synchronizer.top_k_ratio() > 0)
    text += " of ratio " + std::to_string(synchronizer.top_k_ratio());
  text += ", aggregator " + printAggregator(synchronizer.aggregator());
  return text + ", sharded stage " + std::to_string(synchronizer.sharded_stage());
}

class EntryCheck {
public:
  EntryCheck(const Strategy &strategy, const GraphFacts &facts, const Resources &resources, const StrategyLines &lines)
      : strategy(strategy), resources(resources), lines(lines), destinations(resources),
        gradients(strategy.replicas_to_aggregate() > 0 ? strategy.replicas_to_aggregate()
                                                       : countReplicas(strategy, resources)) {
    for (const VariableFacts &variable : facts.variables)
      variables[variable.name] = &variable;
  }

  llvm::Error run() {
    for (int i = 0; i < strategy.node_config_size(); ++i)
      if (llvm::Error error = checkEntry(i))
        return error;
    return llvm::Error::success();
  }

private:
  /// A group as its first gradient made it.
  struct Group {
    std::string kind;
    std::string variable;
  };

  llvm::Error fail(int entry, int shard, const llvm::Twine &message) {
    const Strategy::Node &node = strategy.node_config(entry);
    std::string of = shard < 0 ? "" : "shard " + std::to_string(shard) + " in ";
    return llvm::createStringError(lines.at(entry, shard) + of + "the strategy's entry of variable '" +
                                   node.var_name() + "' " + message);
  }

  llvm::Error checkEntry(int i) {
    const Strategy::Node &node = strategy.node_config(i);
    auto variable = variables.find(node.var_name());
    if (variable == variables.end())
      return llvm::Error::success();
    if (node.partitioner().empty() && node.part_config().empty())
      return checkSynchronizer(i, -1, node, *variable->second);
    if (llvm::Error error = checkPartition(i, *variable->second))
      return error;
    for (int shard = 0; shard < node.part_config_size(); ++shard)
      if (llvm::Error error = checkSynchronizer(i, shard, node.part_config(shard), *variable->second))
        return error;
    return llvm::Error::success();
  }

  llvm::Error checkPartition(int i, const VariableFacts &variable) {
    const Strategy::Node &node = strategy.node_config(i);
    if (node.partitioner().empty())
      return fail(i, -1, "has part_config and no partitioner; add one, such as partitioner: \"2\"");
    llvm::Expected<Partition> partition = parsePartitioner(node.partitioner(), variable.shape);
    if (!partition)
      return fail(i, -1, "does not fit: " + llvm::toString(partition.takeError()));
    if (partition->axis != 0 && variable.gradient == Gradient::Sparse)
      return fail(i, -1,
                  "has partitioner \"" + node.partitioner() + "\", but its gradient is of rows: axis 0 can be split");
    if (node.part_config_size() != partition->getCount())
      return fail(i, -1,
                  "has partitioner \"" + node.partitioner() + "\" and " + llvm::Twine(node.part_config_size()) +
                      " part_config; give one for each of the " + llvm::Twine(partition->getCount()) + " shards");
    if (node.synchronizer_case() != Strategy::Node::SYNCHRONIZER_NOT_SET)
      return fail(i, -1, "has a synchronizer beside those of its shards; leave it out");
    const Strategy::Node &first = node.part_config(0);
    for (int shard = 0; shard < node.part_config_size(); ++shard) {
      const Strategy::Node &part = node.part_config(shard);
      std::string name = getShardName(node.var_name(), shard);
      if (part.var_name() != name && !part.var_name().empty())
        return fail(i, shard, "is called '" + part.var_name() + "'; shards are called '" + name + "'");
      if (!part.partitioner().empty() || part.part_config_size())
        return fail(i, shard, "is partitioned itself; a shard cannot be");
      if (part.synchronizer_case() != first.synchronizer_case() ||
          part.pssynchronizer().sync() != first.pssynchronizer().sync())
        return fail(i, shard, "is not synchronized as shard 0 is; all shards of a variable are");
    }
    return llvm::Error::success();
  }

  llvm::Error checkSynchronizer(int i, int shard, const Strategy::Node &node, const VariableFacts &variable) {
    if (node.has_pssynchronizer())
      return checkServer(i, shard, node.pssynchronizer());
    if (node.has_allreducesynchronizer())
      return checkAllReduce(i, shard, node.allreducesynchronizer(), variable);
    return fail(i, shard, "has no synchronizer; add AllReduceSynchronizer { group: 0 }");
  }

  llvm::Error checkServer(int i, int shard, const PSSynchronizer &synchronizer) {
    llvm::StringRef destination = synchronizer.reduction_destination();
    if (!destinations.find(destination)) {
      llvm::StringRef hint = destination.starts_with("ps:") ? "; servers are asked for with --ps" : "";
      return fail(i, shard,
                  "is placed on '" + destination + "', which the resources do not have; they have: " +
                      llvm::join(resources.getReductionDevices(), ", ") + hint);
    }
    if (synchronizer.staleness() < 0)
      return fail(i, shard, "has staleness " + llvm::Twine(synchronizer.staleness()) + "; give at least 0");
    if (synchronizer.staleness() > 0 && !synchronizer.sync())
      return fail(i, shard,
                  "has staleness " + llvm::Twine(synchronizer.staleness()) +
                      ", which bounds synchronous training; add sync: true");
    if (synchronizer.aggregator().kind() != Aggregator::AUTO && !synchronizer.sync())
      return fail(i, shard,
                  "has aggregator " + printAggregator(synchronizer.aggregator()) +
                      ", but applies gradients one by one; add sync: true");
    return checkAggregators(i, shard, synchronizer.aggregator());
  }

  llvm::Error checkAllReduce(int i, int shard, const AllReduceSynchronizer &synchronizer,
                             const VariableFacts &variable) {
    if (!AllReduceSynchronizer::Spec_IsValid(synchronizer.spec()))
      return fail(i, shard,
                  "has spec " + llvm::Twine(synchronizer.spec()) + "; AUTO, NCCL, RING, DOUBLING and HALVING are");
    if (std::string wrong = checkCompressor(synchronizer); !wrong.empty())
      return fail(i, shard, wrong);
    if (synchronizer.group() < 0)
      return fail(i, shard, "has group " + llvm::Twine(synchronizer.group()) + "; groups are numbers from 0 on");
    int stage = synchronizer.sharded_stage();
    if (stage < 0 || stage > 2)
      return fail(i, shard, "has sharded_stage " + llvm::Twine(stage) + "; 0, 1 and 2 are");
    bool isSum = synchronizer.compressor() != AllReduceSynchronizer::PowerSGDCompressor &&
                 synchronizer.compressor() != AllReduceSynchronizer::TopKCompressor;
    std::string compressor = printCompressor(synchronizer.compressor());
    if (stage && variable.gradient == Gradient::Sparse)
      return fail(i, shard, "has sharded_stage " + llvm::Twine(stage) + ", but its gradient is of rows; leave it out");
    if (stage == 2 && !isSum)
      return fail(i, shard,
                  "has sharded_stage 2 and compressor " + compressor +
                      ", which cannot be reduce-scattered; use sharded_stage: 1");
    if (isRobust(synchronizer.aggregator()) && (stage == 2 || !isSum))
      return fail(i, shard,
                  "has aggregator " + printAggregator(synchronizer.aggregator()) +
                      ", which needs each replica's gradient, and " +
                      (stage == 2 ? "sharded_stage 2" : "compressor " + compressor) +
                      ", which does not send it; leave one out");
    if (llvm::Error error = checkAggregators(i, shard, synchronizer.aggregator()))
      return error;
    return checkGroup(i, shard, synchronizer, variable);
  }

  llvm::Error checkAggregators(int i, int shard, const Aggregator &aggregator) {
    std::string wrong = checkAggregator(aggregator, gradients);
    if (wrong.empty())
      return llvm::Error::success();
    return fail(i, shard, "has aggregator " + printAggregator(aggregator) + ", which " + wrong);
  }

  llvm::Error checkGroup(int i, int shard, const AllReduceSynchronizer &synchronizer, const VariableFacts &variable) {
    // Rows are gathered by themselves, whatever their group.
    if (variable.gradient == Gradient::Sparse)
      return llvm::Error::success();
    std::string kind = describeKind(synchronizer, variable.type);
    auto [group, isNew] = groups.try_emplace(synchronizer.group(), Group{kind, variable.name});
    if (isNew || group->second.kind == kind)
      return llvm::Error::success();
    return fail(i, shard,
                "is in group " + llvm::Twine(synchronizer.group()) + " as (" + kind + "), with variable '" +
                    group->second.variable + "' as (" + group->second.kind +
                    "); gradients of a group are of one kind: give it another group");
  }

  const Strategy &strategy;
  const Resources &resources;
  const StrategyLines &lines;
  Destinations destinations;
  /// That make an update.
  int gradients;
  llvm::StringMap<const VariableFacts *> variables;
  llvm::DenseMap<int32_t, Group> groups;
};

} // namespace

llvm::Error checkEntries(const Strategy &strategy, const GraphFacts &facts, const Resources &resources,
                         const StrategyLines &lines) {
  return EntryCheck(strategy, facts, resources, lines).run();
}

} // namespace distc::strategies

//===- StrategyText.cpp - What a strategy says, in words ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyText.h"
#include "strategies/Aggregators.h"
#include "strategies/Compressors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace distc::strategies {

static std::string describeServer(const autodist::proto::PSSynchronizer &synchronizer) {
  std::string text = synchronizer.sync() ? "PS sync" : "PS async";
  if (synchronizer.staleness())
    text += ", staleness " + std::to_string(synchronizer.staleness());
  if (synchronizer.local_replication())
    text += ", proxy";
  if (synchronizer.aggregator().kind() != Aggregator::AUTO)
    text += ", " + printAggregator(synchronizer.aggregator());
  return text;
}

static std::string describeAllReduce(const AllReduceSynchronizer &synchronizer) {
  std::string text = synchronizer.sharded_stage()
                         ? "sharded update, stage " + std::to_string(synchronizer.sharded_stage())
                         : "all-reduce";
  if (synchronizer.spec() != AllReduceSynchronizer::AUTO)
    text += ", " + AllReduceSynchronizer::Spec_Name(synchronizer.spec());
  if (synchronizer.compressor() != AllReduceSynchronizer::NoneCompressor)
    text += ", " + printCompressor(synchronizer.compressor());
  if (synchronizer.power_sgd_rank())
    text += " rank " + std::to_string(synchronizer.power_sgd_rank());
  if (synchronizer.top_k_ratio() > 0)
    text += llvm::formatv(" {0:P2}", synchronizer.top_k_ratio()).str();
  if (synchronizer.aggregator().kind() != Aggregator::AUTO)
    text += ", " + printAggregator(synchronizer.aggregator());
  return text;
}

std::string describeSynchronizer(const Strategy::Node &node) {
  if (node.part_config_size())
    return describeSynchronizer(node.part_config(0));
  if (node.has_pssynchronizer())
    return describeServer(node.pssynchronizer());
  return node.has_allreducesynchronizer() ? describeAllReduce(node.allreducesynchronizer()) : "none";
}

std::string describePlace(const Strategy::Node &node) {
  constexpr size_t kShown = 4;
  std::vector<std::string> places;
  llvm::StringSet<> seen;
  bool isGroup = false;
  auto add = [&](const Strategy::Node &entry) {
    isGroup |= entry.has_allreducesynchronizer();
    std::string place = entry.has_pssynchronizer() ? entry.pssynchronizer().reduction_destination()
                                                   : std::to_string(entry.allreducesynchronizer().group());
    if (seen.insert(place).second)
      places.push_back(place);
  };
  if (node.part_config().empty())
    add(node);
  for (const Strategy::Node &part : node.part_config())
    add(part);
  std::string text = llvm::join(llvm::ArrayRef(places).take_front(std::min(places.size(), kShown)), ", ");
  if (places.size() > kShown)
    text += " and " + std::to_string(places.size() - kShown) + " more";
  return (isGroup ? places.size() > 1 ? "groups " : "group " : "") + text;
}

std::vector<std::string> describeSteps(const Strategy &strategy) {
  std::vector<std::string> lines;
  if (strategy.accumulate_steps() > 1)
    lines.push_back("accumulate_steps " + std::to_string(strategy.accumulate_steps()));
  if (strategy.replicas_to_aggregate())
    lines.push_back("replicas_to_aggregate " + std::to_string(strategy.replicas_to_aggregate()));
  if (strategy.variable_averages_decay() > 0)
    lines.push_back(llvm::formatv("variable_averages_decay {0}", strategy.variable_averages_decay()));
  if (auto coupling = strategy.graph_config().coupling(); coupling != Strategy::GraphConfig::AUTO)
    lines.push_back(coupling == Strategy::GraphConfig::REPLICA ? "coupling replica" : "coupling whole");
  return lines;
}

} // namespace distc::strategies

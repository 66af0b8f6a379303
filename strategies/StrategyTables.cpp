//===- StrategyTables.cpp - A strategy and its loads as tables ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Partition.h"
#include "strategies/StrategyText.h"
#include "strategies/TextTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace distc::strategies {
namespace {

/// What a server holds, or a group sends.
struct Load {
  int64_t entries = 0, bytes = 0;
  std::string type;
};

struct Loads {
  llvm::MapVector<std::string, Load, llvm::StringMap<unsigned>> servers;
  std::map<int, Load> groups;

  void add(const Strategy::Node &node, const VariableFacts &variable, int64_t bytes) {
    Load &load = node.has_pssynchronizer() ? servers[node.pssynchronizer().reduction_destination()]
                                           : groups[node.allreducesynchronizer().group()];
    ++load.entries;
    load.bytes += bytes;
    load.type = variable.type;
  }
};

std::string describeShards(const Partition &partition) {
  int64_t least = partition.sizes.back(), most = partition.sizes.front();
  std::string sizes = std::to_string(least) + (least == most ? "" : " or " + std::to_string(most));
  return llvm::formatv("{0} of axis {1}, {2} each", partition.getCount(), partition.axis, sizes);
}

void addVariable(const Strategy::Node &node, const VariableFacts &variable, TextTable &table, Loads &loads) {
  std::string shards = "-";
  if (node.part_config().empty()) {
    loads.add(node, variable, variable.bytes);
  } else if (llvm::Expected<Partition> partition = parsePartitioner(node.partitioner(), variable.shape)) {
    shards = describeShards(*partition);
    int64_t sliceBytes = variable.bytes / variable.shape[partition->axis];
    for (auto [part, size] : llvm::zip(node.part_config(), partition->sizes))
      loads.add(part, variable, sliceBytes * size);
  } else {
    llvm::consumeError(partition.takeError());
  }
  table.add({variable.name, std::to_string(variable.bytes), variable.gradient == Gradient::Sparse ? "sparse" : "dense",
             describeSynchronizer(node), describePlace(node), shards});
}

/// Loads with their share of all, and the sum where there are several.
template <typename Map>
void printLoads(const char *what, const char *entries, const Map &loads, llvm::raw_ostream &os) {
  if (loads.empty())
    return;
  Load all;
  for (const auto &[name, load] : loads) {
    all.entries += load.entries;
    all.bytes += load.bytes;
  }
  TextTable table({what, entries, "bytes", "share"}, {false, true, true, true});
  auto add = [&](const std::string &name, const Load &load) {
    double share = all.bytes ? double(load.bytes) / all.bytes : 0;
    table.add({name, std::to_string(load.entries), std::to_string(load.bytes), llvm::formatv("{0:P1}", share)});
  };
  for (const auto &[name, load] : loads) {
    if constexpr (std::is_same_v<std::decay_t<decltype(name)>, std::string>)
      add(name, load);
    else
      add(std::to_string(name), load);
  }
  if (loads.size() > 1)
    add("all", all);
  os << "\n";
  table.print(os);
}

} // namespace

void printTables(const Strategy &strategy, const GraphFacts &facts, const Resources &resources, llvm::raw_ostream &os) {
  llvm::StringMap<const VariableFacts *> variables;
  for (const VariableFacts &variable : facts.variables)
    variables[variable.name] = &variable;
  os << "strategy " << (strategy.builder().empty() ? "of a file" : strategy.builder()) << ", "
     << strategy.graph_config().replicas_size() << " replicas\n";
  for (const std::string &line : describeSteps(strategy))
    os << line << "\n";
  os << "\n";
  TextTable table({"variable", "bytes", "gradient", "synchronizer", "place or group", "shards"},
                  {false, true, false, false, false, false});
  Loads loads;
  for (const std::string &device : resources.getReductionDevices())
    loads.servers[device];
  for (const Strategy::Node &node : strategy.node_config())
    if (auto variable = variables.find(node.var_name()); variable != variables.end())
      addVariable(node, *variable->second, table, loads);
  table.print(os);
  if (llvm::any_of(loads.servers, [](const auto &server) { return server.second.entries > 0; }))
    printLoads("server", "variables and shards", loads.servers, os);
  printLoads("group", "gradients", loads.groups, os);
}

} // namespace distc::strategies

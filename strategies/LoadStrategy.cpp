//===- LoadStrategy.cpp - The strategy that a command line names ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/LoadStrategy.h"
#include "strategies/Builder.h"
#include "strategies/Partition.h"
#include "strategies/StrategyCheck.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

namespace distc::strategies {

static void complete(Strategy &strategy, const GraphFacts &facts, const Resources &resources) {
  llvm::StringSet<> updated;
  for (const VariableFacts &variable : facts.variables)
    if (variable.gradient != Gradient::None)
      updated.insert(variable.name);
  auto *nodes = strategy.mutable_node_config();
  nodes->erase(std::remove_if(nodes->begin(), nodes->end(),
                              [&](const Strategy::Node &node) { return !updated.contains(node.var_name()); }),
               nodes->end());
  for (Strategy::Node &node : *nodes)
    for (auto [i, part] : llvm::enumerate(*node.mutable_part_config()))
      part.set_var_name(getShardName(node.var_name(), i));
  if (strategy.graph_config().replicas_size() == 0)
    for (const std::string &device : resources.getReplicaDevices())
      strategy.mutable_graph_config()->add_replicas(device);
}

llvm::Expected<Strategy> loadStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources,
                                      std::vector<std::string> &remarks) {
  StrategyLines lines;
  bool isFile = !isBuilderSpec(spec) && llvm::sys::fs::exists(spec);
  llvm::Expected<Strategy> strategy =
      isFile ? readStrategy(spec, &lines) : buildStrategy(spec, facts, resources, remarks);
  if (!strategy)
    return strategy;
  if (llvm::Error error = checkStrategy(*strategy, facts, resources, remarks, lines))
    return error;
  complete(*strategy, facts, resources);
  return strategy;
}

} // namespace distc::strategies

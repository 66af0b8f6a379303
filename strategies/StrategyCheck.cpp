//===- StrategyCheck.cpp - Whether a strategy fits graph and resources ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyCheck.h"
#include "core/near_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace distc::strategies {

/// What may have been meant; where no variable's name is near, some that the graph trains.
static std::string suggest(llvm::StringRef name, const GraphFacts &facts) {
  std::vector<std::string> all, trainable;
  for (const VariableFacts &variable : facts.variables) {
    all.push_back(variable.name);
    if (variable.trainable)
      trainable.push_back(variable.name);
  }
  if (std::string near = ::drt::didYouMean(name, all); !near.empty())
    return near;
  return trainable.empty() ? "; the graph has no trainable variable" : ::drt::nearNamesHint(name, trainable);
}

llvm::Error checkAgainstGraph(const Strategy &strategy, const GraphFacts &facts, std::vector<std::string> &remarks,
                              const StrategyLines &lines) {
  llvm::StringMap<const VariableFacts *> variables;
  for (const VariableFacts &variable : facts.variables)
    variables[variable.name] = &variable;
  llvm::StringSet<> named;
  for (auto [i, node] : llvm::enumerate(strategy.node_config())) {
    if (!variables.contains(node.var_name()))
      return llvm::createStringError(lines.at(i) + "the strategy names variable '" + node.var_name() +
                                     "', which the graph does not have" + suggest(node.var_name(), facts));
    if (!named.insert(node.var_name()).second)
      return llvm::createStringError(lines.at(i) + "the strategy names variable '" + node.var_name() +
                                     "' twice; remove one of the two node_config entries");
    if (variables[node.var_name()]->gradient == Gradient::None)
      remarks.push_back(lines.at(i) + "the strategy's entry of variable '" + node.var_name() +
                        "' has no effect: no update of the training step writes it");
  }
  std::vector<llvm::StringRef> missing;
  for (const VariableFacts &variable : facts.variables)
    if (variable.needsStrategy() && !named.contains(variable.name))
      missing.push_back(variable.name);
  if (missing.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      "the strategy does not say how variable '" + missing.front() + "' is synchronized" +
      (missing.size() > 1 ? " (and " + llvm::Twine(missing.size() - 1) + " more)" : llvm::Twine()) +
      "; add: node_config { var_name: \"" + missing.front() + "\" AllReduceSynchronizer { group: 0 } }");
}

int countReplicas(const Strategy &strategy, const Resources &resources) {
  int count = strategy.graph_config().replicas_size();
  return count ? count : resources.getReplicaDevices().size();
}

llvm::Error checkAgainstResources(const Strategy &strategy, const Resources &resources, const StrategyLines &lines) {
  std::vector<std::string> devices = resources.getDevices();
  llvm::StringSet<> known, used;
  for (const std::string &device : devices)
    known.insert(device);
  int count = strategy.graph_config().replicas_size();
  if (resources.replicasAskedFor && count && count != resources.replicasAskedFor)
    return llvm::createStringError("the strategy places " + llvm::Twine(count) + " replicas, but " +
                                   llvm::Twine(resources.replicasAskedFor) +
                                   " were asked for; build the strategy for as many, or leave its replicas out");
  for (auto [i, device] : llvm::enumerate(strategy.graph_config().replicas())) {
    if (!known.contains(device))
      return llvm::createStringError(lines.atReplica(i) + "the strategy places a replica on '" + device +
                                     "', which the resources do not have; they have: " + llvm::join(devices, ", "));
    if (!used.insert(device).second)
      return llvm::createStringError(lines.atReplica(i) + "the strategy places two replicas on '" + device + "'");
  }
  return llvm::Error::success();
}

llvm::Error checkStrategy(const Strategy &strategy, const GraphFacts &facts, const Resources &resources,
                          std::vector<std::string> &remarks, const StrategyLines &lines) {
  if (llvm::Error error = checkAgainstGraph(strategy, facts, remarks, lines))
    return error;
  if (llvm::Error error = checkAgainstResources(strategy, resources, lines))
    return error;
  if (llvm::Error error = checkEntries(strategy, facts, resources, lines))
    return error;
  return checkSteps(strategy, countReplicas(strategy, resources), lines);
}

} // namespace distc::strategies

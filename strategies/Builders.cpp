//===- Builders.cpp - The registry of strategies, and how they are asked for -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "core/near_names.h"
#include "strategies/Aggregators.h"
#include "strategies/Builder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace distc::strategies {

Builder makePS();
Builder makePSLoadBalancing();
Builder makeRoundRobinPS();
Builder makeHashPS();
Builder makePartitionedPS();
Builder makeUnevenPartitionedPS();
Builder makeFixedSize();
Builder makeMinMaxVariable();
Builder makeVariableAxisSize();
Builder makeAllReduce();
Builder makePartitionedAR();
Builder makeRandomAxisPartitionAR();
Builder makeShardedUpdate();
Builder makeParallax();

llvm::ArrayRef<Builder> getBuilders() {
  static const std::vector<Builder> builders = {makePS(),
                                                makePSLoadBalancing(),
                                                makeRoundRobinPS(),
                                                makeHashPS(),
                                                makePartitionedPS(),
                                                makeUnevenPartitionedPS(),
                                                makeFixedSize(),
                                                makeMinMaxVariable(),
                                                makeVariableAxisSize(),
                                                makeAllReduce(),
                                                makePartitionedAR(),
                                                makeRandomAxisPartitionAR(),
                                                makeShardedUpdate(),
                                                makeParallax()};
  return builders;
}

llvm::ArrayRef<Parameter> getCommonParameters() {
  static const std::vector<Parameter> parameters = {
      Parameter::integer("accumulate_steps", "1", "batches whose gradients make one synchronization", 1),
      Parameter::aggregator("aggregator", "how gradients become one: auto, mean, sum, median, trimmed_mean:f, krum:f, "
                                          "multi_krum:f,m or geometric_median"),
      Parameter::integer("replicas_to_aggregate", "0", "gradients that make an update; 0: one from each replica"),
      Parameter::integer("total_replicas", "0", "replicas that run; 0: on all devices"),
      Parameter::choice("coupling", "auto",
                        "values over the batch: the whole batch's, or each replica's own; auto: whole, where every "
                        "update is of all replicas' gradients",
                        {"auto", "whole", "replica"}),
      Parameter::fraction("variable_averages", "0", "decay of the variables' moving averages; 0: none are kept")};
  return parameters;
}

static const Builder *findBuilder(llvm::StringRef name) {
  const Builder *found =
      llvm::find_if(getBuilders(), [&](const Builder &builder) { return builder.name.equals_insensitive(name); });
  return found == getBuilders().end() ? nullptr : found;
}

bool isBuilderSpec(llvm::StringRef spec) {
  const Builder *builder = findBuilder(spec.split(':').first);
  // A file that is called like a builder but for case is the file.
  return builder && (spec.starts_with(builder->name) || !llvm::sys::fs::exists(spec));
}

std::string spellSpec(llvm::StringRef spec) {
  llvm::StringRef name = spec.split(':').first;
  const Builder *builder = isBuilderSpec(spec) ? findBuilder(name) : nullptr;
  return builder ? (builder->name + spec.substr(name.size())).str() : spec.str();
}

/// The devices of total_replicas replicas, the first ones.
static llvm::Error setReplicas(const Resources &resources, int64_t total, Strategy &strategy) {
  std::vector<std::string> devices = resources.getReplicaDevices();
  if (total > static_cast<int64_t>(devices.size()))
    return llvm::createStringError("total_replicas=" + llvm::Twine(total) + ", but the resources have devices for " +
                                   llvm::Twine(devices.size()));
  if (total)
    devices.resize(total);
  for (const std::string &device : devices)
    strategy.mutable_graph_config()->add_replicas(device);
  return llvm::Error::success();
}

static void setAggregator(const Aggregator &aggregator, Strategy::Node &node) {
  for (Strategy::Node &part : *node.mutable_part_config())
    setAggregator(aggregator, part);
  if (node.has_pssynchronizer())
    *node.mutable_pssynchronizer()->mutable_aggregator() = aggregator;
  if (node.has_allreducesynchronizer())
    *node.mutable_allreducesynchronizer()->mutable_aggregator() = aggregator;
}

/// Does what getCommonParameters() ask for, but for the replicas.
static void setCommon(const Arguments &arguments, Strategy &strategy) {
  if (int64_t steps = arguments.getInteger("accumulate_steps"); steps > 1)
    strategy.set_accumulate_steps(steps);
  if (llvm::StringRef coupling = arguments.get("coupling"); coupling != "auto")
    strategy.mutable_graph_config()->set_coupling(coupling == "whole" ? Strategy::GraphConfig::WHOLE
                                                                      : Strategy::GraphConfig::REPLICA);
  strategy.set_replicas_to_aggregate(arguments.getInteger("replicas_to_aggregate"));
  strategy.set_variable_averages_decay(arguments.getFraction("variable_averages"));
  Aggregator aggregator = llvm::cantFail(parseAggregator(arguments.get("aggregator")));
  if (aggregator.kind() == Aggregator::AUTO)
    return;
  for (Strategy::Node &node : *strategy.mutable_node_config())
    setAggregator(aggregator, node);
}

llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources,
                                       std::vector<std::string> &remarks) {
  auto [name, text] = spec.split(':');
  const Builder *builder = findBuilder(name);
  if (!builder) {
    std::vector<std::string> known;
    for (const Builder &each : getBuilders())
      known.push_back(each.name.str());
    std::string all = "; there are: " + llvm::join(known, ", ");
    if (name.equals_insensitive("Auto"))
      return llvm::createStringError("strategy " + name + " is not supported yet" + all);
    std::string near = ::drt::didYouMean(name, known);
    return llvm::createStringError("no strategy is called '" + name + "', nor is there such a file" +
                                   (near.empty() ? all : near));
  }
  std::string what = ("strategy " + builder->name).str();
  std::vector<Parameter> parameters = builder->parameters;
  llvm::append_range(parameters, getCommonParameters());
  llvm::Expected<Arguments> arguments = parseArguments(what, parameters, text);
  if (!arguments)
    return arguments.takeError();
  Strategy strategy;
  strategy.set_builder(spellSpec(spec));
  strategy.set_id(spellSpec(spec));
  std::vector<std::string> said;
  BuildState build{facts, resources, *arguments, strategy, said};
  if (llvm::Error error = setReplicas(resources, arguments->getInteger("total_replicas"), strategy))
    return llvm::createStringError(what + ": " + llvm::toString(std::move(error)));
  if (llvm::Error error = builder->build(build))
    return error;
  setCommon(*arguments, strategy);
  for (const std::string &remark : said)
    remarks.push_back(what + ": " + remark);
  return strategy;
}

llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources) {
  std::vector<std::string> remarks;
  return buildStrategy(spec, facts, resources, remarks);
}

} // namespace distc::strategies

//===- AllReduce.cpp - Every gradient is all-reduced, in groups --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Builder.h"

namespace distc::strategies {

using autodist::proto::AllReduceSynchronizer;

static llvm::Expected<Strategy> build(const GraphFacts &facts, const Resources &resources, const Arguments &arguments) {
  AllReduceSynchronizer::Spec spec = AllReduceSynchronizer::AUTO;
  AllReduceSynchronizer::Compressor compressor = AllReduceSynchronizer::NoneCompressor;
  AllReduceSynchronizer::Spec_Parse(arguments.get("spec").str(), &spec);
  AllReduceSynchronizer::Compressor_Parse(arguments.get("compressor").str(), &compressor);
  int64_t chunkSize = arguments.getInteger("chunk_size"), count = 0;

  Strategy strategy;
  for (const std::string &device : resources.getReplicaDevices())
    strategy.mutable_graph_config()->add_replicas(device);
  for (const VariableFacts &variable : facts.variables) {
    if (!variable.needsStrategy())
      continue;
    Strategy::Node *node = strategy.add_node_config();
    node->set_var_name(variable.name);
    AllReduceSynchronizer *synchronizer = node->mutable_allreducesynchronizer();
    synchronizer->set_spec(spec);
    synchronizer->set_compressor(compressor);
    synchronizer->set_group(count++ / chunkSize);
  }
  return strategy;
}

Builder makeAllReduce() {
  return {"AllReduce",
          "every gradient is all-reduced, chunk_size variables together, in the order of variables",
          {{"chunk_size", "128", "variables a group", /*minimum=*/1, {}},
           {"spec", "AUTO", "how: AUTO, NCCL or RING", 0, {"AUTO", "NCCL", "RING"}},
           {"compressor",
            "NoneCompressor",
            "what is sent: NoneCompressor, HorovodCompressor, HorovodCompressorEF or PowerSGDCompressor",
            0,
            {"NoneCompressor", "HorovodCompressor", "HorovodCompressorEF", "PowerSGDCompressor"}}},
          build};
}

} // namespace distc::strategies

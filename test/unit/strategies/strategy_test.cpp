//===- strategy_test.cpp - Strategies: files, builders, checks ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Builder.h"
#include "strategies/StrategyCheck.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

static VariableFacts variable(const char *name, bool trainable = true, Gradient gradient = Gradient::Dense) {
  return {name, "float32", {4}, 16, trainable, gradient};
}

static GraphFacts threeVariables() {
  return {{variable("hidden/kernel"), variable("hidden/kernel/Momentum", false), variable("hidden/bias"),
           variable("frozen", true, Gradient::None), variable("logits/kernel")}};
}

static Strategy build(llvm::StringRef spec) {
  return llvm::cantFail(buildStrategy(spec, threeVariables(), Resources::local(2)));
}

static std::string buildError(llvm::StringRef spec) {
  llvm::Expected<Strategy> strategy = buildStrategy(spec, threeVariables(), Resources::local(2));
  REQUIRE(!strategy);
  return llvm::toString(strategy.takeError());
}

static std::string graphError(const Strategy &strategy) {
  std::vector<std::string> remarks;
  return llvm::toString(checkAgainstGraph(strategy, threeVariables(), remarks));
}

TEST_CASE("AllReduce groups chunk_size trained variables in their order") {
  Strategy strategy = build("AllReduce:chunk_size=2");
  REQUIRE(strategy.node_config_size() == 3);
  CHECK(strategy.node_config(0).var_name() == "hidden/kernel");
  CHECK(strategy.node_config(1).var_name() == "hidden/bias");
  CHECK(strategy.node_config(2).var_name() == "logits/kernel");
  CHECK(strategy.node_config(1).allreducesynchronizer().group() == 0);
  CHECK(strategy.node_config(2).allreducesynchronizer().group() == 1);
  CHECK(strategy.graph_config().replicas_size() == 2);
  CHECK(strategy.graph_config().replicas(1) == "localhost:CPU:1");
  CHECK(strategy.builder() == "AllReduce:chunk_size=2");
}

TEST_CASE("errors of NAME:key=value list what there is") {
  CHECK(buildError("Auto").rfind("strategy Auto is not supported yet; there are: PS, ", 0) == 0);
  CHECK(buildError("Gossip").rfind("no strategy is called 'Gossip', nor is there such a file; there are: PS, ", 0) ==
        0);
  CHECK(buildError("allredce") ==
        "no strategy is called 'allredce', nor is there such a file; did you mean 'AllReduce'?");
  CHECK(buildError("AllReduce:chunk=1") == "strategy AllReduce: unknown parameter 'chunk'; did you mean 'chunk_size'?");
  CHECK(buildError("AllReduce:gossip=1")
            .rfind("strategy AllReduce: unknown parameter 'gossip'; it has chunk_size=128 (", 0) == 0);
  CHECK(buildError("AllReduce:chunk_size").rfind("strategy AllReduce: 'chunk_size' is not key=value; it has ", 0) == 0);
  CHECK(buildError("AllReduce:chunk_size=0") == "strategy AllReduce: chunk_size=0 is not a whole number of at least 1");
  CHECK(buildError("AllReduce:all_reduce_alg=tree") ==
        "strategy AllReduce: all_reduce_alg=tree is not one of: auto, ring, doubling, halving");
  CHECK(buildError("AllReduce:spec=TREE") == "strategy AllReduce: spec=TREE is not one of: AUTO, NCCL, RING");
}

TEST_CASE("text and binary are told apart by content") {
  Strategy strategy = build("AllReduce");
  Strategy text = llvm::cantFail(parseStrategy(printStrategy(strategy), "s"));
  Strategy binary = llvm::cantFail(parseStrategy(strategy.SerializeAsString(), "s"));
  CHECK(text.SerializeAsString() == strategy.SerializeAsString());
  CHECK(binary.SerializeAsString() == strategy.SerializeAsString());
}

TEST_CASE("the wire format is AutoDist's") {
  // Strategy{id: "i", node_config{var_name: "w", AllReduceSynchronizer{spec: RING, group: 3}, partitioner: "1,4"},
  // node_config{var_name: "v", PSSynchronizer{reduction_destination: "d", sync: true, staleness: 2}},
  // graph_config{replicas: "r"}}
  const std::string wire("\x0a\x01i\x1a\x0e\x0a\x01w\x1a\x04\x08\x02\x18\x03\x22\x03"
                         "1,4\x1a\x0c\x0a\x01v\x12\x07\x0a\x01"
                         "d\x18\x01\x20\x02\x22\x03\x0a\x01r");
  Strategy strategy = llvm::cantFail(parseStrategy(wire, "wire"));
  CHECK(strategy.node_config(0).allreducesynchronizer().group() == 3);
  CHECK(strategy.node_config(0).partitioner() == "1,4");
  CHECK(strategy.node_config(1).pssynchronizer().staleness() == 2);
  CHECK(strategy.node_config(1).pssynchronizer().sync());
  CHECK(strategy.graph_config().replicas(0) == "r");
  CHECK(strategy.SerializeAsString() == wire);
}

TEST_CASE("an error in a text strategy has its line") {
  llvm::Expected<Strategy> strategy = parseStrategy("id: \"a\"\nnodes { }\n", "s.pbtxt");
  REQUIRE(!strategy);
  CHECK(llvm::toString(strategy.takeError()).rfind("s.pbtxt:2:", 0) == 0);
}

TEST_CASE("a strategy names variables of the graph, once each, and all trained ones") {
  Strategy strategy = build("AllReduce");
  CHECK(graphError(strategy) == "");
  Strategy unknown = strategy;
  unknown.mutable_node_config(1)->set_var_name("hidden/biases");
  CHECK(graphError(unknown) ==
        "the strategy names variable 'hidden/biases', which the graph does not have; did you mean 'hidden/bias'?");
  Strategy twice = strategy;
  twice.mutable_node_config(1)->set_var_name("hidden/kernel");
  CHECK(graphError(twice) ==
        "the strategy names variable 'hidden/kernel' twice; remove one of the two node_config entries");
  Strategy missing = strategy;
  missing.mutable_node_config()->RemoveLast();
  CHECK(graphError(missing) ==
        "the strategy does not say how variable 'logits/kernel' is synchronized; add: node_config { "
        "var_name: \"logits/kernel\" AllReduceSynchronizer { group: 0 } }");
  strategy.add_node_config()->set_var_name("frozen");
  std::vector<std::string> remarks;
  CHECK(llvm::toString(checkAgainstGraph(strategy, threeVariables(), remarks)) == "");
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0] ==
        "the strategy's entry of variable 'frozen' has no effect: no update of the training step writes it");
}

TEST_CASE("replicas are on devices that there are, as many as were asked for") {
  Strategy strategy = build("AllReduce");
  CHECK(llvm::toString(checkAgainstResources(strategy, Resources::local(2))) == "");
  CHECK(llvm::toString(checkAgainstResources(strategy, Resources::local(4)))
            .rfind("the strategy places 2 replicas, but 4", 0) == 0);
  Resources other = Resources::local(1);
  other.replicasAskedFor = 0;
  CHECK(llvm::toString(checkAgainstResources(strategy, other)) ==
        "the strategy places a replica on 'localhost:CPU:1', which the resources do not have; they have: "
        "localhost:CPU:0");
}

TEST_CASE("what executables cannot do yet is said with the entry's name") {
  auto nativeError = [](llvm::StringRef spec) { return llvm::toString(checkNative(build(spec))); };
  CHECK(nativeError("AllReduce") == "");
  CHECK(nativeError("AllReduce:compressor=fp16") == "");
  CHECK(nativeError("AllReduce:aggregator=median") == "");
  CHECK(nativeError("AllReduce:accumulate_steps=2") == "");
  CHECK(nativeError("PS") == "");
  CHECK(nativeError("PartitionedPS:staleness=2,local_proxy_variable=true") == "");
  CHECK(nativeError("AllReduce:variable_averages=0.9") == "");
  CHECK(nativeError("PS:sync=false") == "");
  CHECK(nativeError("PS:replicas_to_aggregate=1") == "");
  CHECK(nativeError("PS:replicas_to_aggregate=1,aggregator=median") == "");
  const auto refuses = [&](llvm::StringRef spec, llvm::StringRef text) {
    return llvm::StringRef(nativeError(spec)).contains(text);
  };
  CHECK(
      refuses("PS:sync=false,accumulate_steps=2",
              "the strategy has accumulate_steps and asynchronous updates (sync: false), which is not supported yet"));
  CHECK(nativeError("PartitionedAR") == "");
  CHECK(nativeError("ShardedUpdate") == "");
}

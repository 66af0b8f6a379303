//===- builders_test.cpp - What each builder makes -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "random_facts.h"
#include "strategies/Builder.h"
#include "strategies/Partition.h"
#include "strategies/StrategyCheck.h"
#include <catch2/catch.hpp>
#include <map>
#include <set>

using namespace distc::strategies;

static Strategy build(llvm::StringRef spec, const GraphFacts &facts, int servers = 2) {
  return llvm::cantFail(buildStrategy(spec, facts, Resources::local(2, servers)));
}

static std::vector<std::string> getPlaces(const Strategy &strategy) {
  std::vector<std::string> places;
  for (const Strategy::Node &node : strategy.node_config()) {
    if (node.part_config().empty())
      places.push_back(node.pssynchronizer().reduction_destination());
    for (const Strategy::Node &part : node.part_config())
      places.push_back(part.pssynchronizer().reduction_destination());
  }
  return places;
}

static std::vector<std::string> getPartitioners(const Strategy &strategy) {
  std::vector<std::string> partitioners;
  for (const Strategy::Node &node : strategy.node_config())
    partitioners.push_back(node.partitioner());
  return partitioners;
}

static std::vector<int> getGroups(const Strategy &strategy) {
  std::vector<int> groups;
  for (const Strategy::Node &node : strategy.node_config()) {
    if (node.part_config().empty())
      groups.push_back(node.allreducesynchronizer().group());
    for (const Strategy::Node &part : node.part_config())
      groups.push_back(part.allreducesynchronizer().group());
  }
  return groups;
}

using Texts = std::vector<std::string>;

TEST_CASE("placements") {
  GraphFacts facts{{makeVariable("a", {6}), makeVariable("b", {2}), makeVariable("c", {3}), makeVariable("d", {9})}};
  CHECK(getPlaces(build("PS", facts)) == Texts{"ps:0", "ps:0", "ps:0", "ps:0"});
  CHECK(getPlaces(build("PSLoadBalancing", facts)) == Texts{"ps:0", "ps:1", "ps:1", "ps:1"});
  CHECK(getPlaces(build("RoundRobinPS", facts)) == Texts{"ps:0", "ps:1", "ps:0", "ps:1"});
  CHECK(getPlaces(build("PS", facts, /*servers=*/0)).front() == "localhost:CPU:0");

  Strategy before = build("HashPS", facts, 5);
  facts.variables.insert(facts.variables.begin(), makeVariable("new", {4}));
  Strategy after = build("HashPS", facts, 5);
  after.mutable_node_config()->DeleteSubrange(0, 1);
  CHECK(getPlaces(before) == getPlaces(after));
}

TEST_CASE("parameters of servers are in every entry and shard") {
  GraphFacts facts{{makeVariable("w", {4, 2}), makeVariable("s", {})}};
  Strategy strategy = build("PartitionedPS:sync=true,staleness=3,local_proxy_variable=true", facts);
  REQUIRE(strategy.node_config(0).part_config_size() == 2);
  CHECK(strategy.node_config(0).synchronizer_case() == Strategy::Node::SYNCHRONIZER_NOT_SET);
  for (const Strategy::Node *node :
       {&strategy.node_config(0).part_config(0), &strategy.node_config(0).part_config(1), &strategy.node_config(1)}) {
    CHECK(node->pssynchronizer().sync());
    CHECK(node->pssynchronizer().staleness() == 3);
    CHECK(node->pssynchronizer().local_replication());
  }
  CHECK(!build("PS:sync=false", facts).node_config(0).pssynchronizer().sync());
}

TEST_CASE("PartitionedPS splits axis 0 by its least divisor, UnevenPartitionedPS by its least non-divisor") {
  GraphFacts facts;
  for (int64_t size : {1, 2, 3, 4, 6, 9, 12, 25, 97, 2003})
    facts.variables.push_back(makeVariable("v" + std::to_string(size), {size, 5}));
  facts.variables.push_back(makeVariable("scalar", {}));
  CHECK(getPartitioners(build("PartitionedPS", facts)) ==
        Texts{"", "2,1", "3,1", "2,1", "2,1", "3,1", "2,1", "5,1", "97,1", "", ""});
  CHECK(getPartitioners(build("UnevenPartitionedPS", facts)) ==
        Texts{"", "", "2,1", "3,1", "4,1", "2,1", "5,1", "2,1", "2,1", "2,1", ""});
  CHECK(getPartitioners(build("PartitionedPS:max_shards=3000", facts))[9] == "2003,1");

  std::vector<std::string> remarks;
  llvm::cantFail(buildStrategy("PartitionedPS", facts, Resources::local(2, 2), remarks));
  CHECK(remarks == Texts{"strategy PartitionedPS: left whole, as the strategy cannot split them: v1, v2003, scalar"});
}

TEST_CASE("shards go to the servers with fewest bytes, and round again where there are more") {
  GraphFacts facts{{makeVariable("a", {7, 1}), makeVariable("b", {4, 1}), makeVariable("c", {4, 1})}};
  CHECK(getPlaces(build("PartitionedPS", facts, 3)) ==
        Texts{"ps:0", "ps:1", "ps:2", "ps:0", "ps:1", "ps:2", "ps:0", "ps:1", "ps:2", "ps:0", "ps:1"});
}

TEST_CASE("TensorFlow's partitioners") {
  // What tf.compat.v1.fixed_size_partitioner and its sisters return for these shapes.
  GraphFacts facts{{makeVariable("table", {1024, 1024}), makeVariable("odd", {10, 3}), makeVariable("bias", {3})}};
  CHECK(getPartitioners(build("fixed_size:shards=4", facts)) == Texts{"4,1", "4,1", "3"});
  CHECK(getPartitioners(build("fixed_size:shards=4,axis=1", facts)) == Texts{"1,4", "1,3", ""});
  CHECK(getPartitioners(build("min_max_variable:max_partitions=100", facts)) == Texts{"16,1", "", ""});
  CHECK(getPartitioners(build("min_max_variable:max_partitions=8", facts)) == Texts{"8,1", "", ""});
  CHECK(getPartitioners(build("min_max_variable:max_partitions=8,min_slice_bytes=1", facts)) ==
        Texts{"8,1", "8,1", "3"});
  CHECK(getPartitioners(build("variable_axis_size:max_shard_bytes=65536", facts)) == Texts{"64,1", "", ""});
  CHECK(getPartitioners(build("variable_axis_size:max_shard_bytes=40", facts)) == Texts{"1024,1", "4,1", ""});
  CHECK(getPartitioners(build("variable_axis_size:max_shard_bytes=1,max_shards=5", facts)) == Texts{"5,1", "5,1", "3"});
  CHECK(getPlaces(build("fixed_size:shards=3,placement=round_robin", facts)) ==
        Texts{"ps:0", "ps:1", "ps:0", "ps:1", "ps:0", "ps:1", "ps:0", "ps:1", "ps:0"});
}

TEST_CASE("sparse gradients are split on axis 0 alone") {
  GraphFacts facts{{makeVariable("table", {8, 6}, Gradient::Sparse)}};
  CHECK(getPartitioners(build("fixed_size:shards=2,axis=1", facts)) == Texts{""});
  for (int seed = 0; seed < 20; ++seed)
    CHECK(getPartitioners(build("RandomAxisPartitionAR:seed=" + std::to_string(seed), facts)) == Texts{"2,1"});
}

TEST_CASE("RandomAxisPartitionAR draws axes of more than one entry, by its seed") {
  GraphFacts facts;
  for (int i = 0; i < 40; ++i)
    facts.variables.push_back(makeVariable("v" + std::to_string(i), {4, 1, 9}));
  Strategy strategy = build("RandomAxisPartitionAR:seed=1", facts);
  Texts drawn = getPartitioners(strategy);
  CHECK(std::set<std::string>(drawn.begin(), drawn.end()) == std::set<std::string>{"2,1,1", "1,1,3"});
  CHECK(getPartitioners(build("RandomAxisPartitionAR:seed=1", facts)) == drawn);
  CHECK(getPartitioners(build("RandomAxisPartitionAR:seed=2", facts)) != drawn);
}

TEST_CASE("groups have chunk_size gradients, shards counted, of one type each") {
  GraphFacts facts{{makeVariable("a", {4}), makeVariable("b", {3}), makeVariable("d", {2}, Gradient::Dense, "float64"),
                    makeVariable("c", {1})}};
  CHECK(getGroups(build("AllReduce:chunk_size=2", facts)) == std::vector<int>{0, 0, 1, 2});
  CHECK(getGroups(build("PartitionedAR:chunk_size=4", facts)) == std::vector<int>{0, 0, 0, 0, 1, 2, 2, 1});
}

TEST_CASE("buckets of bytes begin at the last variable with a small one") {
  GraphFacts facts;
  for (int i = 0; i < 6; ++i)
    facts.variables.push_back(makeVariable("v" + std::to_string(i), {1 << 18})); // 1 MiB
  CHECK(getGroups(build("AllReduce:bucket_mb=2", facts)) == std::vector<int>{3, 2, 2, 1, 1, 0});
  CHECK(getGroups(build("AllReduce:bucket_mb=2,chunk_size=1", facts)) == std::vector<int>{5, 4, 3, 2, 1, 0});
}

TEST_CASE("Parallax puts sparse gradients on servers; they are not compressed") {
  GraphFacts facts{{makeVariable("table", {8, 6}, Gradient::Sparse), makeVariable("w", {6, 6})}};
  Strategy strategy = build("Parallax:compressor=fp16,sync=false", facts);
  CHECK(strategy.node_config(0).has_pssynchronizer());
  CHECK(!strategy.node_config(0).pssynchronizer().sync());
  CHECK(strategy.node_config(1).allreducesynchronizer().compressor() ==
        autodist::proto::AllReduceSynchronizer::HorovodCompressor);
  Strategy reduced = build("AllReduce:compressor=fp16", facts);
  CHECK(reduced.node_config(0).allreducesynchronizer().compressor() ==
        autodist::proto::AllReduceSynchronizer::NoneCompressor);
  CHECK(reduced.node_config(0).allreducesynchronizer().group() !=
        reduced.node_config(1).allreducesynchronizer().group());
}

TEST_CASE("ShardedUpdate shards dense updates") {
  GraphFacts facts{{makeVariable("table", {8, 6}, Gradient::Sparse), makeVariable("w", {6, 6})}};
  CHECK(build("ShardedUpdate:stage=1", facts).node_config(1).allreducesynchronizer().sharded_stage() == 1);
  CHECK(build("ShardedUpdate", facts).node_config(1).allreducesynchronizer().sharded_stage() == 2);
  CHECK(build("ShardedUpdate", facts).node_config(0).allreducesynchronizer().sharded_stage() == 0);
}

/// Whatever the builder: each variable that needs it has an entry, in the graph's order, whose shards are all of it.
static void checkInvariants(const Strategy &strategy, const GraphFacts &facts) {
  std::vector<const VariableFacts *> wanted;
  for (const VariableFacts &variable : facts.variables)
    if (variable.needsStrategy())
      wanted.push_back(&variable);
  REQUIRE(strategy.node_config_size() == static_cast<int>(wanted.size()));
  for (int i = 0; i < strategy.node_config_size(); ++i) {
    const Strategy::Node &node = strategy.node_config(i);
    REQUIRE(node.var_name() == wanted[i]->name);
    REQUIRE(node.partitioner().empty() == node.part_config().empty());
    if (node.partitioner().empty())
      continue;
    Partition partition = llvm::cantFail(parsePartitioner(node.partitioner(), wanted[i]->shape));
    REQUIRE(partition.getCount() == node.part_config_size());
    REQUIRE(std::accumulate(partition.sizes.begin(), partition.sizes.end(), int64_t(0)) ==
            wanted[i]->shape[partition.axis]);
  }
}

/// The greedy rule's bound: no server has more than the least one by more than the largest thing placed.
static void checkBalance(const Strategy &strategy, const GraphFacts &facts, int servers) {
  std::map<std::string, int64_t> loads;
  for (int server = 0; server < servers; ++server)
    loads["ps:" + std::to_string(server)] = 0;
  int64_t largest = 0;
  for (const VariableFacts &variable : facts.variables)
    if (variable.needsStrategy())
      largest = std::max(largest, variable.bytes);
  std::map<std::string, const VariableFacts *> variables;
  for (const VariableFacts &variable : facts.variables)
    variables[variable.name] = &variable;
  for (const Strategy::Node &node : strategy.node_config())
    loads[node.pssynchronizer().reduction_destination()] += variables[node.var_name()]->bytes;
  auto [least, most] =
      std::minmax_element(loads.begin(), loads.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  REQUIRE(loads.size() == static_cast<size_t>(servers));
  REQUIRE(most->second - least->second <= largest);
}

TEST_CASE("every builder's strategy of random graphs passes the checks") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    GraphFacts facts = makeRandomFacts(seed);
    int servers = 1 + seed % 7;
    Resources resources = Resources::local(1 + seed % 5, servers);
    for (const Builder &builder : getBuilders()) {
      INFO("seed " << seed << " " << builder.name.str());
      std::vector<std::string> remarks;
      Strategy strategy = llvm::cantFail(buildStrategy(builder.name, facts, resources));
      checkInvariants(strategy, facts);
      REQUIRE(llvm::toString(checkStrategy(strategy, facts, resources, remarks)) == "");
      if (builder.name == "PSLoadBalancing")
        checkBalance(strategy, facts, servers);
      Strategy read = llvm::cantFail(parseStrategy(printStrategy(strategy), "text"));
      REQUIRE(read.SerializeAsString() == strategy.SerializeAsString());
    }
  }
}

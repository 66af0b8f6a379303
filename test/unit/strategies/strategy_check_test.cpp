//===- strategy_check_test.cpp - What a strategy must be -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "random_facts.h"
#include "strategies/Builder.h"
#include "strategies/LoadStrategy.h"
#include "strategies/StrategyCheck.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

static GraphFacts facts() {
  return {{makeVariable("w", {6, 4}), makeVariable("b", {4}), makeVariable("table", {10, 4}, Gradient::Sparse),
           makeVariable("d", {4}, Gradient::Dense, "float64")}};
}

/// The first error of what `text`, a strategy for 3 replicas and 2 servers, says of "w", or of the whole.
static std::string error(const std::string &text, int replicas = 3) {
  StrategyLines lines;
  Strategy strategy = llvm::cantFail(parseStrategy(text, "s", &lines));
  for (const VariableFacts &variable : facts().variables)
    if (llvm::none_of(strategy.node_config(), [&](const auto &node) { return node.var_name() == variable.name; })) {
      Strategy::Node *node = strategy.add_node_config();
      node->set_var_name(variable.name);
      node->mutable_pssynchronizer()->set_reduction_destination("ps:0");
      node->mutable_pssynchronizer()->set_sync(true);
    }
  std::vector<std::string> remarks;
  return llvm::toString(checkStrategy(strategy, facts(), Resources::local(replicas, 2), remarks, lines));
}

static std::string entryError(const std::string &entry, int replicas = 3) {
  return error("\nnode_config { var_name: \"w\"\n" + entry + " }", replicas);
}

static std::string ofEntry(const char *wrong) {
  return std::string("s:2: the strategy's entry of variable 'w' ") + wrong;
}

TEST_CASE("what is right has no error") {
  CHECK(error("") == "");
  CHECK(entryError("AllReduceSynchronizer { group: 3 compressor: PowerSGDCompressor power_sgd_rank: 2 }") == "");
  CHECK(
      entryError("partitioner: \"1,2\" part_config { AllReduceSynchronizer {} } part_config { var_name: \"w/part_1:0\" "
                 "AllReduceSynchronizer { group: 1 } }") == "");
  CHECK(error("replicas_to_aggregate: 2") == "");
  CHECK(error("replicas_to_aggregate: 6") == "");
}

TEST_CASE("servers") {
  CHECK(
      entryError("PSSynchronizer { reduction_destination: \"ps:2\" sync: true }") ==
      ofEntry("is placed on 'ps:2', which the resources do not have; they have: ps:0, ps:1; servers are asked for with "
              "--ps"));
  CHECK(entryError("PSSynchronizer { reduction_destination: \"ps:0\" staleness: 2 }") ==
        ofEntry("has staleness 2, which bounds synchronous training; add sync: true"));
  CHECK(entryError("PSSynchronizer { reduction_destination: \"ps:0\" sync: true staleness: -1 }") ==
        ofEntry("has staleness -1; give at least 0"));
  CHECK(entryError("PSSynchronizer { reduction_destination: \"ps:0\" aggregator { kind: MEDIAN } }") ==
        ofEntry("has aggregator median, but applies gradients one by one; add sync: true"));
  CHECK(entryError("") == ofEntry("has no synchronizer; add AllReduceSynchronizer { group: 0 }"));
}

TEST_CASE("partitions") {
  CHECK(entryError("partitioner: \"7,1\"") ==
        ofEntry("does not fit: partitioner \"7,1\" makes 7 shards of axis 0, which has only 6 entries"));
  CHECK(entryError("part_config { AllReduceSynchronizer {} }")
            .rfind(ofEntry("has part_config and no partitioner; add one"), 0) == 0);
  CHECK(entryError("partitioner: \"2,1\" part_config { AllReduceSynchronizer {} }") ==
        ofEntry("has partitioner \"2,1\" and 1 part_config; give one for each of the 2 shards"));
  const std::string shard = "part_config { AllReduceSynchronizer {} }\n";
  CHECK(entryError("partitioner: \"2,1\" AllReduceSynchronizer {} " + shard + shard) ==
        ofEntry("has a synchronizer beside those of its shards; leave it out"));
  CHECK(entryError("partitioner: \"2,1\"\n" + shard +
                   "part_config { PSSynchronizer { reduction_destination: \"ps:0\" } }") ==
        "s:5: shard 1 in the strategy's entry of variable 'w' is not synchronized as shard 0 is; all shards of a "
        "variable are");
  CHECK(entryError("partitioner: \"2,1\"\n" + shard +
                   "part_config { var_name: \"w/part_2\" AllReduceSynchronizer {} }") ==
        "s:5: shard 1 in the strategy's entry of variable 'w' is called 'w/part_2'; shards are called 'w/part_1'");
  CHECK(
      entryError("partitioner: \"2,1\"\n" + shard + "part_config { partitioner: \"2,1\" AllReduceSynchronizer {} }") ==
      "s:5: shard 1 in the strategy's entry of variable 'w' is partitioned itself; a shard cannot be");
  CHECK(
      error("node_config { var_name: \"table\" partitioner: \"1,2\" " + shard + shard + "}") ==
      "s:1: the strategy's entry of variable 'table' has partitioner \"1,2\", but its gradient is of rows: axis 0 can "
      "be split");
}

TEST_CASE("all-reduce") {
  auto reduceError = [](const std::string &text) { return entryError("AllReduceSynchronizer { " + text + " }"); };
  CHECK(reduceError("power_sgd_rank: 2") == ofEntry("has a power_sgd_rank without compressor: PowerSGDCompressor"));
  CHECK(reduceError("compressor: TopKCompressor top_k_ratio: 1.5").find("which is not between 0 and 1") !=
        std::string::npos);
  CHECK(reduceError("sharded_stage: 3") == ofEntry("has sharded_stage 3; 0, 1 and 2 are"));
  CHECK(reduceError("sharded_stage: 2 compressor: TopKCompressor")
            .find("cannot be reduce-scattered; use sharded_stage: 1") != std::string::npos);
  CHECK(reduceError("sharded_stage: 2 aggregator { kind: MEDIAN }").find("which needs each replica's gradient") !=
        std::string::npos);
  CHECK(reduceError("aggregator { kind: KRUM f: 1 }") ==
        ofEntry("has aggregator krum:1, which needs at least 2f + 3 = 5 gradients, but there are 3 gradients"));
  CHECK(reduceError("group: -1") == ofEntry("has group -1; groups are numbers from 0 on"));
}

TEST_CASE("a group has gradients of one kind") {
  auto pair = [](const char *other, const char *variable) {
    return error(std::string("node_config { var_name: \"w\" AllReduceSynchronizer { group: 1 } }\nnode_config { "
                             "var_name: \"") +
                 variable + "\" AllReduceSynchronizer { group: 1 " + other + " } }");
  };
  CHECK(pair("", "b") == "");
  CHECK(pair("", "table") == "");
  CHECK(pair("", "d").rfind("s:2: the strategy's entry of variable 'd' is in group 1 as (float64, ", 0) == 0);
  CHECK(pair("compressor: BF16Compressor", "b").find("with variable 'w' as (float32, AUTO, compressor none") !=
        std::string::npos);
}

TEST_CASE("steps") {
  const std::string reduced = "node_config { var_name: \"w\" AllReduceSynchronizer {} }\n";
  const std::string asynchronous =
      "node_config { var_name: \"w\" PSSynchronizer { reduction_destination: \"ps:0\" } }\n";
  CHECK(error("replicas_to_aggregate: -1").rfind("the strategy's replicas_to_aggregate is -1; give at least 1", 0) ==
        0);
  CHECK(error(reduced + "replicas_to_aggregate: 3") == "");
  CHECK(
      error(reduced + "replicas_to_aggregate: 2") ==
      "s:1: the strategy has replicas_to_aggregate 2 of 3 replicas, which servers alone can count, but variable 'w' is "
      "all-reduced: give it a PSSynchronizer");
  CHECK(error(asynchronous + "replicas_to_aggregate: 2").find("needs synchronous training") != std::string::npos);
  CHECK(error(asynchronous + "accumulate_steps: 2").find("needs synchronous training") != std::string::npos);
  CHECK(error("accumulate_steps: -2") == "the strategy's accumulate_steps is -2; give at least 1");
  CHECK(error("variable_averages_decay: 1").rfind("the strategy's variable_averages_decay is ", 0) == 0);
  // An aggregator sees the gradients that make an update.
  const std::string krum = "node_config { var_name: \"w\" PSSynchronizer { reduction_destination: \"ps:0\" sync: true "
                           "aggregator { kind: KRUM f: 1 } } }\n";
  CHECK(error(krum + "replicas_to_aggregate: 5", 6) == "");
  CHECK(error(krum + "replicas_to_aggregate: 4", 6).find("but there are 4 gradients") != std::string::npos);
}

TEST_CASE("a strategy that is loaded is complete") {
  GraphFacts some = facts();
  std::vector<std::string> remarks;
  some.variables[3].gradient = Gradient::None;
  Strategy strategy = llvm::cantFail(loadStrategy("PartitionedPS", some, Resources::local(3, 2), remarks));
  CHECK(strategy.node_config_size() == 3);
  CHECK(strategy.graph_config().replicas_size() == 3);
  CHECK(strategy.node_config(0).part_config(1).var_name() == "w/part_1");
  CHECK(llvm::toString(loadStrategy("/nowhere/S.pbtxt", some, Resources::local(3, 2), remarks).takeError())
            .rfind("no strategy is called '/nowhere/S.pbtxt', nor is there such a file", 0) == 0);
}

//===- parameters_test.cpp - Parameters and aggregators ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "random_facts.h"
#include "strategies/Aggregators.h"
#include "strategies/Builder.h"
#include "strategies/Compressors.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

static GraphFacts oneVariable() { return {{makeVariable("w", {8, 4})}}; }

static Strategy build(llvm::StringRef spec, int replicas = 8) {
  return llvm::cantFail(buildStrategy(spec, oneVariable(), Resources::local(replicas, 2)));
}

static std::string error(llvm::StringRef spec, int replicas = 8) {
  llvm::Expected<Strategy> strategy = buildStrategy(spec, oneVariable(), Resources::local(replicas, 2));
  return strategy ? "" : llvm::toString(strategy.takeError());
}

TEST_CASE("a list's numbers continue the value before them") {
  Strategy strategy = build("AllReduce:aggregator=multi_krum:1,3,chunk_size=8,accumulate_steps=2");
  const Aggregator &aggregator = strategy.node_config(0).allreducesynchronizer().aggregator();
  CHECK(aggregator.kind() == Aggregator::MULTI_KRUM);
  CHECK(aggregator.f() == 1);
  CHECK(aggregator.m() == 3);
  CHECK(strategy.accumulate_steps() == 2);
  CHECK(build("AllReduce:chunk_size=8,aggregator=multi_krum:1,3")
            .node_config(0)
            .allreducesynchronizer()
            .aggregator()
            .m() == 3);
}

TEST_CASE("every aggregator is read as it is printed, and set on shards too") {
  for (const char *text :
       {"auto", "mean", "sum", "median", "trimmed_mean:2", "krum:1", "multi_krum:1,3", "geometric_median"})
    CHECK(printAggregator(llvm::cantFail(parseAggregator(text))) == text);
  for (const char *text : {"", "average", "median:1", "krum", "krum:", "krum:-1", "krum:1,2", "multi_krum:1",
                           "multi_krum:1,x", "trimmed_mean:1.5"})
    CHECK(llvm::toString(parseAggregator(text).takeError()).find("multi_krum:f,m") != std::string::npos);
  Strategy strategy = build("PartitionedPS:aggregator=trimmed_mean:1");
  REQUIRE(strategy.node_config(0).part_config_size() == 2);
  for (const Strategy::Node &part : strategy.node_config(0).part_config())
    CHECK(part.pssynchronizer().aggregator().kind() == Aggregator::TRIMMED_MEAN);
}

TEST_CASE("bounds of f and m are the papers'") {
  auto wrong = [](llvm::StringRef text, int gradients) {
    return checkAggregator(llvm::cantFail(parseAggregator(text)), gradients);
  };
  CHECK(wrong("trimmed_mean:1", 3) == "");
  CHECK(wrong("trimmed_mean:1", 2) == "needs more than 2f = 2 gradients, but there are 2 gradients");
  CHECK(wrong("krum:1", 5) == "");
  CHECK(wrong("krum:1", 4) == "needs at least 2f + 3 = 5 gradients, but there are 4 gradients");
  CHECK(wrong("multi_krum:1,3", 6) == "");
  CHECK(wrong("multi_krum:1,4", 6) == "needs m from 1 to n - f - 2 = 3");
  CHECK(wrong("multi_krum:1,0", 6) == "needs m from 1 to n - f - 2 = 3");
  CHECK(wrong("krum:2147483647", 5) != "");
  Aggregator median;
  median.set_kind(Aggregator::MEDIAN);
  median.set_f(1);
  CHECK(checkAggregator(median, 5) == "has an f or m, which it does not use");
  median.set_kind(static_cast<Aggregator::Kind>(77));
  CHECK(checkAggregator(median, 5) == "is of no kind that there is");
}

TEST_CASE("compressors have AutoDist's names and short ones") {
  auto compressor = [](llvm::StringRef name) {
    return build(("AllReduce:compressor=" + name).str()).node_config(0).allreducesynchronizer();
  };
  CHECK(compressor("HorovodCompressorEF").compressor() == AllReduceSynchronizer::HorovodCompressorEF);
  CHECK(compressor("fp16_ef").compressor() == AllReduceSynchronizer::HorovodCompressorEF);
  CHECK(compressor("bf16").compressor() == AllReduceSynchronizer::BF16Compressor);
  CHECK(compressor("power_sgd").power_sgd_rank() == 1);
  CHECK(compressor("power_sgd,power_sgd_rank=4").power_sgd_rank() == 4);
  CHECK(compressor("top_k,top_k_ratio=0.25").top_k_ratio() == 0.25f);
  CHECK(compressor("none").top_k_ratio() == 0);
  for (llvm::StringRef name : getCompressorNames())
    CHECK(checkCompressor(compressor(name)) == "");
}

TEST_CASE("what all builders can be asked for") {
  for (const Builder &builder : getBuilders()) {
    INFO(builder.name.str());
    Strategy strategy = build((builder.name + ":accumulate_steps=3,aggregator=mean,replicas_to_aggregate=6,"
                                              "total_replicas=4,variable_averages=0.5,coupling=replica")
                                  .str());
    CHECK(strategy.accumulate_steps() == 3);
    CHECK(strategy.replicas_to_aggregate() == 6);
    CHECK(strategy.graph_config().replicas_size() == 4);
    CHECK(strategy.variable_averages_decay() == 0.5f);
    CHECK(strategy.graph_config().coupling() == Strategy::GraphConfig::REPLICA);
  }
  CHECK(error("PS:total_replicas=9") == "strategy PS: total_replicas=9, but the resources have devices for 8");
}

TEST_CASE("values that are not right say what is") {
  CHECK(error("AllReduce:aggregator=krum") ==
        "strategy AllReduce: aggregator=krum is not one of: auto, mean, sum, median, trimmed_mean:f, krum:f, "
        "multi_krum:f,m, geometric_median (f and m are whole numbers)");
  CHECK(error("PS:sync=yes") == "strategy PS: sync=yes is not one of: true, false");
  CHECK(error("PS:coupling=none") == "strategy PS: coupling=none is not one of: auto, whole, replica");
  CHECK(error("PS:variable_averages=2") == "strategy PS: variable_averages=2 is not a number between 0 and 1");
  CHECK(error("PS:staleness=99999999999") == "strategy PS: staleness=99999999999 is not a whole number of at least 0");
  CHECK(error("PS:chunk_size=1").rfind("strategy PS: unknown parameter 'chunk_size'; it has sync=true (", 0) == 0);
}

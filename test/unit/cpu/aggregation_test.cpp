//===- aggregation_test.cpp - Aggregators against plain references -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "exchange_program.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace exchange_test;

namespace {

drt_exchange rule(int32_t aggregator, int32_t f = 0, int32_t m = 0) { return {DRT_COMPRESS_NONE, 0, aggregator, f, m}; }

double distance(const std::vector<float> &a, const std::vector<float> &b) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    if (isElement(i))
      sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

// Runs one step for every placement and gives the result.
std::vector<float> aggregate(const Gradients &gradients, drt_exchange exchange, int32_t reduction = DRT_REDUCE_MEAN) {
  const int32_t replicas = static_cast<int32_t>(gradients[0].size());
  const std::vector<float> result = Program(exchange, reduction, replicas).run(gradients, 1)[0];
  for (int32_t tasks : {2, 3, replicas}) {
    const std::vector<float> other = Program(exchange, reduction, replicas).run(gradients, tasks)[0];
    for (int64_t i = 0; i < count; ++i)
      if (isElement(i))
        REQUIRE(other[i] == result[i]);
  }
  return result;
}

std::vector<float> meanOf(const Gradients &gradients, const std::vector<int> &chosen) {
  std::vector<float> mean(count);
  for (int r : chosen)
    for (int64_t i = 0; i < count; ++i)
      mean[i] += gradients[0][r][i] / static_cast<float>(chosen.size());
  return mean;
}

} // namespace

TEST_CASE("the median and the trimmed mean are those of each element") {
  const int32_t replicas = GENERATE(4, 5);
  const Gradients gradients = gradientsOf(1, replicas);
  const std::vector<float> median = aggregate(gradients, rule(DRT_AGGREGATE_MEDIAN));
  const std::vector<float> trimmed = aggregate(gradients, rule(DRT_AGGREGATE_TRIMMED_MEAN, 1));
  const std::vector<float> sum = aggregate(gradients, rule(DRT_AGGREGATE_MEDIAN), DRT_REDUCE_SUM);
  for (int64_t i = 0; i < count; ++i) {
    if (!isElement(i))
      continue;
    std::vector<double> v;
    for (const auto &own : gradients[0])
      v.push_back(own[i]);
    std::sort(v.begin(), v.end());
    const double middle = (v[(replicas - 1) / 2] + v[replicas / 2]) / 2;
    REQUIRE(median[i] == Approx(middle).margin(1e-6));
    REQUIRE(sum[i] == Approx(replicas * middle).margin(1e-5));
    REQUIRE(trimmed[i] == Approx(std::accumulate(v.begin() + 1, v.end() - 1, 0.0) / (replicas - 2)).margin(1e-6));
  }
}

TEST_CASE("Krum takes the gradient nearest to its neighbours, multi-Krum the mean of the best") {
  const Gradients gradients = gradientsOf(1, 6, 0.3f);
  const int32_t f = 1;
  std::vector<std::pair<double, int>> scores;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> squares;
    for (int j = 0; j < 6; ++j)
      if (j != i)
        squares.push_back(std::pow(distance(gradients[0][i], gradients[0][j]), 2));
    std::sort(squares.begin(), squares.end());
    scores.push_back({std::accumulate(squares.begin(), squares.begin() + 6 - f - 2, 0.0), i});
  }
  std::sort(scores.begin(), scores.end());
  const std::vector<float> one = aggregate(gradients, rule(DRT_AGGREGATE_KRUM, f));
  const std::vector<float> three = aggregate(gradients, rule(DRT_AGGREGATE_MULTI_KRUM, f, 3));
  CHECK(distance(one, gradients[0][scores[0].second]) == 0);
  CHECK(distance(three, meanOf(gradients, {scores[0].second, scores[1].second, scores[2].second})) < 1e-4);
}

TEST_CASE("the geometric median has the smallest sum of distances") {
  const int32_t replicas = 5;
  Gradients gradients = gradientsOf(1, replicas, 0.5f);
  const bool garbage = GENERATE(false, true);
  if (garbage)
    for (float &element : gradients[0][3])
      element *= 1e12f;
  const std::vector<float> result = aggregate(gradients, rule(DRT_AGGREGATE_GEOMETRIC_MEDIAN));
  // Weiszfeld's iteration on the vectors themselves.
  std::vector<double> z(count), next(count);
  for (int round = 0; round < 300; ++round) {
    double total = 0;
    std::fill(next.begin(), next.end(), 0.0);
    for (const auto &own : gradients[0]) {
      double square = 0;
      for (int64_t i = 0; i < count; ++i)
        square += isElement(i) ? (own[i] - z[i]) * (own[i] - z[i]) : 0;
      total += 1 / std::sqrt(square);
      for (int64_t i = 0; i < count; ++i)
        next[i] += isElement(i) ? own[i] / std::sqrt(square) : 0;
    }
    for (int64_t i = 0; i < count; ++i)
      z[i] = next[i] / total;
  }
  CHECK(distance(result, std::vector<float>(z.begin(), z.end())) < 1e-3);
}

TEST_CASE("the geometric median may be one of the gradients") {
  // On one line it is the one in the middle.
  Gradients gradients = gradientsOf(1, 3);
  const float distance = GENERATE(1e-20f, 1.0f, 1e15f);
  for (int replica = 0; replica < 3; ++replica)
    for (int64_t i = 0; i < count; ++i)
      gradients[0][replica][i] = static_cast<float>(i % 7) + distance * static_cast<float>(replica == 2 ? 10 : replica);
  const std::vector<float> result = aggregate(gradients, rule(DRT_AGGREGATE_GEOMETRIC_MEDIAN));
  for (int64_t i = 0; i < count; ++i)
    if (isElement(i))
      REQUIRE(result[i] == Approx(gradients[0][1][i]).epsilon(1e-5).margin(1e-5 * distance));
}

TEST_CASE("the geometric median is one of the gradients where the others pull less than it holds") {
  // Three around one, at angles of 130 degrees and more: unit vectors to them add up to less than 1, and by how much is
  // what the iteration would take long for.
  const float off = GENERATE(0.0f, 0.5f, 0.95f);
  Gradients gradients = gradientsOf(1, 4);
  const float around[4][2] = {{0, 0}, {1, 0}, {-0.5f - off / 2, 0.866f}, {-0.5f, -0.866f - off}};
  for (int replica = 0; replica < 4; ++replica)
    for (int64_t i = 0; i < count; ++i)
      gradients[0][replica][i] = i < 2 ? 3 + around[(replica + 1) % 4][i] : 1;
  const std::vector<float> result = aggregate(gradients, rule(DRT_AGGREGATE_GEOMETRIC_MEDIAN));
  CHECK(distance(result, gradients[0][3]) < 1e-6);
}

TEST_CASE("one replica that sends anything is outvoted") {
  const int32_t replicas = 6;
  Gradients gradients = gradientsOf(1, replicas, 0.1f);
  const std::vector<float> honest = meanOf(gradients, {0, 1, 2, 3, 5});
  const float garbage = GENERATE(-1e30f, 3e38f, HUGE_VALF, __builtin_nanf(""));
  std::fill(gradients[0][4].begin(), gradients[0][4].end(), garbage);
  for (const drt_exchange exchange :
       {rule(DRT_AGGREGATE_MEDIAN), rule(DRT_AGGREGATE_TRIMMED_MEAN, 1), rule(DRT_AGGREGATE_KRUM, 1),
        rule(DRT_AGGREGATE_MULTI_KRUM, 1), rule(DRT_AGGREGATE_GEOMETRIC_MEDIAN)}) {
    const std::vector<float> result = aggregate(gradients, exchange);
    for (int64_t i = 0; i < count; ++i)
      if (isElement(i))
        REQUIRE(std::abs(result[i] - honest[i]) < 0.3);
  }
}

TEST_CASE("an aggregator chooses from what compressors leave") {
  const Gradients gradients = gradientsOf(1, 5);
  drt_exchange exchange = rule(DRT_AGGREGATE_KRUM, 1);
  exchange.compressor = GENERATE(DRT_COMPRESS_BF16, DRT_COMPRESS_TOP_K);
  const std::vector<float> result = aggregate(gradients, exchange);
  int64_t sent = 0;
  for (int64_t i = 0; i < count; ++i)
    sent += isElement(i) && result[i] != 0;
  CHECK(sent == (exchange.compressor == DRT_COMPRESS_TOP_K ? 63 : 1237));
}

TEST_CASE("an aggregator needs enough replicas") {
  const Gradients gradients = gradientsOf(1, 3);
  CHECK_THROWS_WITH(Program(rule(DRT_AGGREGATE_KRUM, 1), DRT_REDUCE_MEAN, 3).run(gradients, 1),
                    "Krum with f = 1 needs 4 replicas or more, and there are 3; take a smaller f or more replicas");
}

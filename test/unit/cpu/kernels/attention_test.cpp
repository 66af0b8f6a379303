//===- attention_test.cpp - Attentions of a replica -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/attention.h"
#include "cpu/kernels/score_rows.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace drt;

namespace {
using Doubles = std::vector<double>;

// By the definition, in double.
struct Exact {
  const drt_attention_desc &d;
  Doubles query, key, value, bias, outputGrad;
  Doubles output, queryGrad, keyGrad, valueGrad;

  size_t element(int64_t example, int64_t tokens, int64_t token, int64_t head, int64_t at) const {
    return static_cast<size_t>(((example * tokens + token) * d.heads + head) * d.size + at);
  }
  double biasOf(int64_t example, int64_t head, int64_t q, int64_t k) const {
    if (bias.empty())
      return 0;
    int64_t at = 0;
    for (auto [size, position] : {std::pair(d.bias_batch, example), std::pair(d.bias_heads, head),
                                  std::pair(d.bias_queries, q), std::pair(d.bias_keys, k)})
      at = at * size + (size == 1 ? 0 : position);
    return bias[static_cast<size_t>(at)];
  }

  void compute() {
    output.assign(query.size(), 0), queryGrad = output;
    keyGrad.assign(key.size(), 0), valueGrad = keyGrad;
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.heads; ++h)
        for (int64_t q = 0; q < d.queries; ++q)
          computeRow(b, h, q);
  }

  void computeRow(int64_t b, int64_t h, int64_t q) {
    Doubles p(static_cast<size_t>(d.keys)), g = p;
    double most = -std::numeric_limits<double>::infinity(), sum = 0, dot = 0;
    for (int64_t k = 0; k < d.keys; ++k) {
      double &score = p[static_cast<size_t>(k)];
      for (int64_t i = 0; i < d.size; ++i)
        score += query[element(b, d.queries, q, h, i)] * key[element(b, d.keys, k, h, i)];
      // Added in float32, where a large bias takes what is small beside it.
      score = static_cast<double>(static_cast<float>(score * d.scale) + static_cast<float>(biasOf(b, h, q, k)));
      most = std::max(most, score);
    }
    for (double &score : p)
      sum += score = std::exp(score - most);
    for (double &power : p)
      power /= sum;
    for (int64_t k = 0; k < d.keys; ++k)
      for (int64_t i = 0; i < d.size; ++i) {
        const double grad = outputGrad[element(b, d.queries, q, h, i)];
        output[element(b, d.queries, q, h, i)] += p[static_cast<size_t>(k)] * value[element(b, d.keys, k, h, i)];
        g[static_cast<size_t>(k)] += grad * value[element(b, d.keys, k, h, i)];
        valueGrad[element(b, d.keys, k, h, i)] += p[static_cast<size_t>(k)] * grad;
      }
    for (size_t k = 0; k < p.size(); ++k)
      dot += p[k] * g[k];
    for (int64_t k = 0; k < d.keys; ++k) {
      const double ofScore = p[static_cast<size_t>(k)] * (g[static_cast<size_t>(k)] - dot) * d.scale;
      for (int64_t i = 0; i < d.size; ++i) {
        queryGrad[element(b, d.queries, q, h, i)] += ofScore * key[element(b, d.keys, k, h, i)];
        keyGrad[element(b, d.keys, k, h, i)] += ofScore * query[element(b, d.queries, q, h, i)];
      }
    }
  }
};

void requireClose(const char *what, const std::vector<float> &got, const Doubles &want) {
  INFO(what);
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (double number : want)
    most = std::max(most, std::abs(number));
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(std::abs(static_cast<double>(got[i]) - want[i]) <= 2e-5 * most + 1e-7);
}

// `masked`: of the first example all keys, by a bias beside which scores are nothing.
void check(const drt_attention_desc &d, int64_t cores, bool masked, Random &random) {
  INFO("batch " << d.batch << " heads " << d.heads << " queries " << d.queries << " keys " << d.keys << " size "
                << d.size << " bias of keys " << d.bias_keys);
  const int64_t ofQuery = d.batch * d.queries * d.heads * d.size, ofKey = d.batch * d.keys * d.heads * d.size;
  const std::vector<float> query = random.tensor<float>(ofQuery), key = random.tensor<float>(ofKey),
                           value = random.tensor<float>(ofKey), grad = random.tensor<float>(ofQuery);
  std::vector<float> bias = random.tensor<float>(d.bias_batch * d.bias_heads * d.bias_queries * d.bias_keys);
  for (size_t i = 0; masked && i < bias.size() / static_cast<size_t>(d.bias_batch); ++i)
    bias[i] = -1e9f;
  auto wide = [](const std::vector<float> &of) { return Doubles(of.begin(), of.end()); };
  Exact exact{d, wide(query), wide(key), wide(value), wide(bias), wide(grad), {}, {}, {}, {}};
  exact.compute();

  std::vector<float> output(query.size()), statistics(static_cast<size_t>(2 * d.batch * d.heads * d.queries)),
      queryGrad(query.size()), keyGrad(key.size()), valueGrad(value.size());
  const AttentionInputs inputs = {query.data(), key.data(), value.data(), bias.empty() ? nullptr : bias.data()};
  CHECK(attentionParts(d).count == d.batch * d.heads);
  for (int64_t core = 0; core < cores; ++core) {
    PrimitiveCache cache(2); // an attention and its gradient
    const Range heads = rangeOf(d.batch * d.heads, cores, core, 1);
    for (int call = 0; call < 2 && !heads.empty(); ++call) {
      attention(cache, 0, d, heads, inputs, output.data(), statistics.data());
      attentionGradient(cache, 1, d, heads, inputs, {statistics.data(), grad.data(), output.data()},
                        {queryGrad.data(), keyGrad.data(), valueGrad.data()});
    }
  }
  requireClose("output", output, exact.output);
  requireClose("query's gradient", queryGrad, exact.queryGrad);
  requireClose("key's gradient", keyGrad, exact.keyGrad);
  requireClose("value's gradient", valueGrad, exact.valueGrad);
}
} // namespace

TEST_CASE("attentions and their gradients are those of the definition", "[attention]") {
  Random random(34);
  for (int trial = 0; trial < 40; ++trial) {
    drt_attention_desc d = {random.integer(1, 3),
                            random.integer(1, 3),
                            random.integer(1, 40),
                            random.integer(1, 70),
                            random.integer(1, 40),
                            0,
                            0,
                            0,
                            0,
                            0.25};
    if (trial % 2) {
      d.bias_batch = trial % 3 ? d.batch : 1, d.bias_heads = trial % 5 ? 1 : d.heads;
      d.bias_queries = trial % 7 ? 1 : d.queries, d.bias_keys = trial % 11 ? d.keys : 1;
    }
    check(d, random.integer(1, 3), trial % 4 == 3, random);
  }
  check({1, 2, 150, 1500, 64, 0, 0, 0, 0, 0.125}, 1, false, random); // several blocks of queries
  check({2, 1, 96, 64, 64, 2, 1, 1, 64, 0.125}, 1, true, random);    // by matrix units
}

TEST_CASE("rows of scores, by the machine's vectors", "[attention]") {
  Random random(35);
  for (const ScoreRows *const *rows = allScoreRows(); *rows; ++rows)
    for (int64_t count : {1, 3, 4, 15, 16, 17, 40, 100}) {
      const std::vector<float> scores = random.tensor<float>(count);
      std::vector<float> row(scores.size());
      for (size_t i = 0; i < row.size(); ++i)
        row[i] = scores[i] * 40;
      const std::vector<float> before = row;
      float most = -std::numeric_limits<float>::infinity();
      double sum = 0;
      for (float number : row)
        most = std::max(most, number);
      REQUIRE((*rows)->largest(row.data(), count) == most);
      const float got = (*rows)->exponentiate(row.data(), count, most);
      for (size_t i = 0; i < row.size(); ++i) {
        const double want = std::exp(static_cast<double>(before[i] - most));
        REQUIRE(static_cast<double>(row[i]) == Approx(want).epsilon(3e-7).margin(1e-37));
        sum += want;
      }
      REQUIRE(static_cast<double>(got) == Approx(sum).epsilon(1e-6));
      row = before;
      (*rows)->probabilities(row.data(), count, most - 1.0f, 0.5f);
      for (size_t i = 0; i < row.size(); ++i)
        REQUIRE(static_cast<double>(row[i]) ==
                Approx(0.5 * std::exp(std::min(0.0, static_cast<double>(before[i] - (most - 1.0f)))))
                    .epsilon(3e-7)
                    .margin(1e-37));
      row = before;
      row[static_cast<size_t>(count) / 2] = std::numeric_limits<float>::quiet_NaN();
      REQUIRE(std::isnan((*rows)->exponentiate(row.data(), count, most)));
      row = before;
      row[static_cast<size_t>(count) / 2] = std::numeric_limits<float>::quiet_NaN();
      (*rows)->probabilities(row.data(), count, most, 1.0f);
      REQUIRE(std::isnan(row[static_cast<size_t>(count) / 2]));
    }
}

//===- compressor_test.cpp - Compressed gradients against plain references -----===//
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

drt_exchange compressed(int32_t compressor, int32_t rank = 0) { return {compressor, rank, 0, 0, 0}; }

float toF16(float x) { return static_cast<float>(static_cast<_Float16>(x)); }
float toBF16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, 4);
  return x;
}

// The mean of what replicas send, `send` a replica's bucket with its errors.
template <class Send, class Round>
std::vector<std::vector<float>> reference(const Gradients &gradients, bool feedback, Send send, Round round) {
  const size_t replicas = gradients[0].size();
  std::vector<std::vector<float>> errors(replicas, std::vector<float>(count)), results;
  for (const auto &step : gradients) {
    std::vector<float> sum(count);
    for (size_t r = 0; r < replicas; ++r) {
      std::vector<float> whole(step[r]);
      for (int64_t i = 0; i < count; ++i)
        whole[i] += feedback ? errors[r][i] : 0;
      const std::vector<float> seen = send(whole);
      for (int64_t i = 0; i < count; ++i) {
        errors[r][i] = whole[i] - seen[i];
        sum[i] += seen[i];
      }
    }
    for (float &element : sum)
      element = round(element * (1.0f / static_cast<float>(replicas)));
    results.push_back(sum);
  }
  return results;
}

double worst(const std::vector<std::vector<float>> &a, const std::vector<std::vector<float>> &b) {
  double most = 0;
  for (size_t s = 0; s < a.size(); ++s)
    for (int64_t i = 0; i < count; ++i)
      if (isElement(i))
        most = std::max<double>(most, std::abs(a[s][i] - b[s][i]));
  return most;
}

template <class Half> std::vector<float> cast(std::vector<float> whole, Half half) {
  std::transform(whole.begin(), whole.end(), whole.begin(), half);
  return whole;
}

std::vector<float> largest(std::vector<float> whole) {
  std::vector<float> sent(count);
  for (const drt_member &member : members) {
    std::vector<int64_t> order(member.count);
    std::iota(order.begin(), order.end(), member.offset);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return std::abs(whole[a]) > std::abs(whole[b]); });
    for (int64_t i = 0; i < member.kept; ++i)
      sent[order[i]] = whole[order[i]];
  }
  return sent;
}

} // namespace

TEST_CASE("halves give the mean of the rounded gradients, rounded, wherever replicas run") {
  const Gradients gradients = gradientsOf(4, 5);
  const bool brain = GENERATE(false, true), feedback = GENERATE(false, true);
  const auto half = brain ? toBF16 : toF16;
  const auto expected =
      reference(gradients, feedback, [&](const std::vector<float> &whole) { return cast(whole, half); }, half);
  const int32_t kind = brain ? (feedback ? DRT_COMPRESS_BF16_EF : DRT_COMPRESS_BF16)
                             : (feedback ? DRT_COMPRESS_F16_EF : DRT_COMPRESS_F16);
  for (int32_t tasks : {1, 2, 3, 5})
    CHECK(worst(Program(compressed(kind), DRT_REDUCE_MEAN, 5).run(gradients, tasks), expected) == 0);
}

TEST_CASE("float16 keeps what is too large for it for the next step") {
  Gradients gradients = gradientsOf(3, 2);
  for (auto &step : gradients)
    for (auto &own : step)
      own[7] = 0;
  gradients[0][0][7] = gradients[0][1][7] = 100000;
  const auto results = Program(compressed(DRT_COMPRESS_F16_EF), DRT_REDUCE_MEAN, 2).run(gradients, 1);
  CHECK(results[0][7] == 65504);
  CHECK(results[1][7] == 34496);
  CHECK(results[2][7] == 0);
}

TEST_CASE("top-k sends the largest elements of each gradient and keeps the others") {
  const Gradients gradients = gradientsOf(6, 5);
  const auto expected = reference(gradients, true, largest, [](float x) { return x; });
  for (int32_t tasks : {1, 2, 3, 5})
    CHECK(worst(Program(compressed(DRT_COMPRESS_TOP_K), DRT_REDUCE_MEAN, 5).run(gradients, tasks), expected) == 0);
}

TEST_CASE("PowerSGD projects the mean gradient, sums small ones, and is the same wherever replicas run") {
  const int32_t rank = GENERATE(1, 4);
  const Gradients gradients = gradientsOf(5, 4);
  const auto results = Program(compressed(DRT_COMPRESS_POWER_SGD, rank), DRT_REDUCE_MEAN, 4).run(gradients, 1);
  for (int32_t tasks : {2, 3, 4})
    CHECK(worst(Program(compressed(DRT_COMPRESS_POWER_SGD, rank), DRT_REDUCE_MEAN, 4).run(gradients, tasks), results) <
          1e-4);
  std::vector<double> mean(count);
  for (const auto &own : gradients[0])
    for (int64_t i = 0; i < count; ++i)
      mean[i] += own[i] / 4.0;
  // What is missing is orthogonal to the result: R^T (M - R) = 0.
  for (int64_t a = 0; a < 30; ++a)
    for (int64_t b = 0; b < 30; ++b) {
      double dot = 0;
      for (int64_t i = 0; i < 40; ++i)
        dot += results[0][i * 30 + a] * (mean[i * 30 + b] - results[0][i * 30 + b]);
      REQUIRE(std::abs(dot) < 1e-4);
    }
  for (int64_t i = 1200; i < count; ++i)
    if (isElement(i))
      REQUIRE(results[0][i] == Approx(mean[i]).margin(1e-6));
}

TEST_CASE("PowerSGD gives gradients of its rank exactly, and others in the long run") {
  const int64_t steps = 200;
  Gradients gradients(steps, std::vector<std::vector<float>>(2, std::vector<float>(count)));
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < 30; ++j) {
      const float first = static_cast<float>((i % 7 - 3) * (j % 5 + 1)),
                  second = static_cast<float>((i % 3) * (j % 4 - 2));
      for (auto &step : gradients) {
        step[0][i * 30 + j] = first + second;
        step[1][i * 30 + j] = first - second / 2;
      }
    }
  const auto exact = Program(compressed(DRT_COMPRESS_POWER_SGD, 2), DRT_REDUCE_SUM, 2).run(gradients, 1);
  const auto rough = Program(compressed(DRT_COMPRESS_POWER_SGD, 1), DRT_REDUCE_SUM, 2).run(gradients, 1);
  for (int64_t i = 0; i < 1200; ++i) {
    const float sum = gradients[0][0][i] + gradients[0][1][i];
    REQUIRE(exact[0][i] == Approx(sum).margin(1e-3));
    double all = 0;
    for (const auto &step : rough)
      all += step[i];
    // What is left over does not grow, so the mean over steps goes to the gradient.
    REQUIRE(all / steps == Approx(sum).margin(0.25));
  }
}

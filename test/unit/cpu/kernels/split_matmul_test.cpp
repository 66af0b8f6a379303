//===- split_matmul_test.cpp - Products of float32 on matrix units -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/split_matmul.h"

#include "cpu/kernels/matrix_units.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

using namespace drt;

namespace {
bool haveUnits() {
  if (matrixUnits())
    return true;
  WARN("this machine has no matrix units");
  return false;
}

GemmShape shapeOf(int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB) {
  return {m, n, k, transposeA, transposeB, transposeA ? m : k, transposeB ? k : n, n, false};
}

float left(const GemmShape &s, const float *a, int64_t row, int64_t step) {
  return a[s.transposeA ? step * s.lda + row : row * s.lda + step];
}
float right(const GemmShape &s, const float *b, int64_t step, int64_t column) {
  return b[s.transposeB ? column * s.ldb + step : step * s.ldb + column];
}

struct Exact {
  double sum, size; // of the products, and of their absolute values
};

Exact exactElement(const GemmShape &s, const float *a, const float *b, int64_t row, int64_t column) {
  Exact exact = {0, 0};
  for (int64_t step = 0; step < s.k; ++step) {
    const double product = static_cast<double>(left(s, a, row, step)) * static_cast<double>(right(s, b, step, column));
    exact.sum += product;
    exact.size += std::abs(product);
  }
  return exact;
}

float loopElement(const GemmShape &s, const float *a, const float *b, int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t step = 0; step < s.k; ++step)
    sum += left(s, a, row, step) * right(s, b, step, column);
  return sum;
}

void multiply(const GemmShape &s, float scale, const float *a, const float *b, float *c) {
  const LeftOperand operand = {a, c};
  splitMatmul(s, scale, {&operand, 1}, b);
}

/// Of a float's own rounding, in each of the sums that a tile takes.
constexpr double rounding = 4.0 / (1 << 23);
} // namespace

TEST_CASE("products on matrix units, of all remainders and transposes", "[split]") {
  if (!haveUnits())
    return;
  Random random(1);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {16, 15, 31},
                         {17, 48, 33},
                         {33, 70, 100},
                         {300, 33, 600},
                         {40, 512, 700},
                         {70, 4000, 40},
                         {2, 4200, 40}})
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true})
        for (bool accumulate : {false, true}) {
          INFO("m " << m << " n " << n << " k " << k << " ta " << transposeA << " tb " << transposeB << " accumulate "
                    << accumulate);
          GemmShape s = shapeOf(m, n, k, transposeA, transposeB);
          s.accumulate = accumulate;
          auto a = random.tensor<float>(m * k), b = random.tensor<float>(k * n), c = random.tensor<float>(m * n);
          auto before = c;
          if (!accumulate) // must not be read
            std::fill(c.begin(), c.end(), std::numeric_limits<float>::quiet_NaN());
          multiply(s, 0.5f, a.data(), b.data(), c.data());
          for (int64_t row = 0; row < m; ++row)
            for (int64_t column = 0; column < n; ++column) {
              const size_t at = static_cast<size_t>(row * n + column);
              const double kept = accumulate ? static_cast<double>(before[at]) : 0;
              const Exact exact = exactElement(s, a.data(), b.data(), row, column);
              const double difference = std::abs(static_cast<double>(c[at]) - (kept + 0.5 * exact.sum));
              REQUIRE(difference <= rounding * (std::abs(kept) + exact.size));
            }
        }
}

TEST_CASE("several left operands meet one right operand", "[split]") {
  if (!haveUnits())
    return;
  Random random(2);
  const GemmShape s = shapeOf(40, 96, 130, false, false);
  auto b = random.tensor<float>(s.k * s.n);
  std::vector<std::vector<float>> as, cs, expected;
  std::vector<LeftOperand> lefts;
  for (int i = 0; i < 9; ++i) {
    as.push_back(random.tensor<float>(s.m * s.k));
    cs.emplace_back(static_cast<size_t>(s.m * s.n));
    expected.emplace_back(static_cast<size_t>(s.m * s.n));
  }
  for (size_t i = 0; i < as.size(); ++i) {
    lefts.push_back({as[i].data(), cs[i].data()});
    multiply(s, 1.0f, as[i].data(), b.data(), expected[i].data());
  }
  splitMatmul(s, 1.0f, lefts, b.data());
  CHECK(cs == expected);
}

TEST_CASE("a sum of products on matrix units is the product over all steps", "[split]") {
  if (!haveUnits())
    return;
  Random random(3);
  for (int64_t k : {32, 96})
    for (int terms : {1, 2, 11}) {
      const GemmShape s = shapeOf(200, 100, k, true, false), whole = shapeOf(200, 100, k * terms, true, false);
      CHECK(suitsSplitSum(s, terms));
      auto a = random.tensor<float>(whole.m * whole.k), b = random.tensor<float>(whole.k * whole.n);
      std::vector<const void *> as, bs;
      for (int term = 0; term < terms; ++term) {
        as.push_back(a.data() + term * k * s.m);
        bs.push_back(b.data() + term * k * s.n);
      }
      std::vector<float> c(static_cast<size_t>(s.m * s.n)), expected(c.size());
      splitSum(s, 0.25f, as, bs.data(), c.data());
      multiply(whole, 0.25f, a.data(), b.data(), expected.data());
      CHECK(c == expected);
    }
  CHECK_FALSE(suitsSplitSum(shapeOf(200, 100, 40, true, false), 11));
}

TEST_CASE("products on matrix units are nearer to the exact ones than a loop's", "[split]") {
  if (!haveUnits())
    return;
  Random random(4);
  for (int64_t k : {64, 1000, 5000}) {
    const GemmShape s = shapeOf(48, 48, k, false, true);
    auto a = random.tensor<float>(s.m * k), b = random.tensor<float>(k * s.n);
    // Of many sizes.
    for (size_t i = 0; i < a.size(); ++i)
      a[i] *= std::ldexp(1.0f, static_cast<int>(i % 40) - 20);
    std::vector<float> c(static_cast<size_t>(s.m * s.n));
    multiply(s, 1.0f, a.data(), b.data(), c.data());
    double units = 0, loop = 0;
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) {
        const double exact = exactElement(s, a.data(), b.data(), row, column).sum;
        units += std::pow(static_cast<double>(c[static_cast<size_t>(row * s.n + column)]) - exact, 2);
        loop += std::pow(static_cast<double>(loopElement(s, a.data(), b.data(), row, column)) - exact, 2);
      }
    INFO("k " << k << ": " << std::sqrt(units) << ", a loop " << std::sqrt(loop));
    CHECK(units < loop);
  }
}

TEST_CASE("a matrix of zeros and ones picks rows exactly on matrix units", "[split]") {
  if (!haveUnits())
    return;
  Random random(5);
  const GemmShape s = shapeOf(64, 80, 200, false, false);
  auto table = random.tensor<float>(s.k * s.n);
  table[0] = 0;
  table[1] = 3.4e38f * 0.99f;
  table[2] = 1e-30f;
  std::vector<float> picks(static_cast<size_t>(s.m * s.k)), c(static_cast<size_t>(s.m * s.n));
  for (int64_t row = 0; row < s.m; ++row)
    picks[static_cast<size_t>(row * s.k + row * 3 % s.k)] = 1;
  multiply(s, 1.0f, picks.data(), table.data(), c.data());
  for (int64_t row = 0; row < s.m; ++row)
    for (int64_t column = 0; column < s.n; ++column)
      REQUIRE(c[static_cast<size_t>(row * s.n + column)] == table[static_cast<size_t>(row * 3 % s.k * s.n + column)]);
}

TEST_CASE("infinities and NaN go through products on matrix units as through others", "[split]") {
  if (!haveUnits())
    return;
  Random random(6);
  const float infinity = std::numeric_limits<float>::infinity();
  for (float special : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 3.4e38f})
    for (bool inLeft : {false, true})
      for (int64_t step : {5, 590}) {
        const GemmShape s = shapeOf(48, 100, 600, false, false);
        auto a = random.tensor<float>(s.m * s.k), b = random.tensor<float>(s.k * s.n);
        (inLeft ? a[static_cast<size_t>(7 * s.k + step)] : b[static_cast<size_t>(step * s.n + 40)]) = special;
        std::vector<float> c(static_cast<size_t>(s.m * s.n), 1.0f);
        GemmShape adding = s;
        adding.accumulate = true;
        multiply(adding, 1.0f, a.data(), b.data(), c.data());
        for (int64_t row = 0; row < s.m; ++row)
          for (int64_t column = 0; column < s.n; ++column) {
            const float expected = 1.0f + loopElement(s, a.data(), b.data(), row, column);
            const float found = c[static_cast<size_t>(row * s.n + column)];
            INFO(special << (inLeft ? " left " : " right ") << "step " << step << " row " << row << " column "
                         << column);
            REQUIRE(std::isnan(found) == std::isnan(expected));
            REQUIRE(std::isinf(found) == std::isinf(expected));
            if (std::isfinite(expected))
              REQUIRE(found == Approx(expected).epsilon(1e-4).margin(1e-4));
            else if (std::isinf(expected))
              REQUIRE(found == expected);
          }
      }
}

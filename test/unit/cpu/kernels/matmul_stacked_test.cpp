//===- matmul_stacked_test.cpp - Products with one right operand -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace drt;

namespace {
drt_matmul_desc shape(int64_t m, int64_t n, int64_t k, bool transposed, bool bias) {
  drt_matmul_desc desc = {};
  desc.dtype = DRT_F32, desc.batch = 1, desc.m = m, desc.n = n, desc.k = k;
  desc.transpose_b = transposed, desc.has_bias = bias;
  return desc;
}

// As one product each, whatever cores have which of the left operands.
void check(const drt_matmul_desc &d, int64_t count, int64_t cores, Random &random) {
  INFO("m " << d.m << " n " << d.n << " k " << d.k << " count " << count << " transposed " << d.transpose_b);
  const std::vector<float> b = random.tensor<float>(d.k * d.n), bias = random.tensor<float>(d.n);
  std::vector<std::vector<float>> lefts, results(static_cast<size_t>(count)), each = results;
  std::vector<void *> operands;
  for (int64_t i = 0; i < count; ++i)
    lefts.push_back(random.tensor<float>(d.m * d.k));
  for (std::vector<float> &left : lefts)
    operands.push_back(left.data());
  for (std::vector<float> &result : results) {
    result.assign(static_cast<size_t>(d.m * d.n) + 1, 7.0f);
    operands.push_back(result.data());
  }
  CHECK(matmulStackedParts(d, count).count == count);
  for (int64_t core = 0; core < cores; ++core) {
    PrimitiveCache cache(1);
    const Range part = rangeOf(count, cores, core, 1);
    for (int call = 0; call < 2 && !part.empty(); ++call)
      matmulStacked(cache, 0, d, part, count, operands.data(), b.data(), bias.data());
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    REQUIRE(results[at].back() == 7.0f);
    for (int64_t row = 0; row < d.m; ++row)
      for (int64_t column = 0; column < d.n; ++column) {
        double sum = d.has_bias ? static_cast<double>(bias[static_cast<size_t>(column)]) : 0;
        for (int64_t step = 0; step < d.k; ++step)
          sum += static_cast<double>(lefts[at][static_cast<size_t>(row * d.k + step)]) *
                 static_cast<double>(b[static_cast<size_t>(d.transpose_b ? column * d.k + step : step * d.n + column)]);
        if (d.epilogue == DRT_EPILOGUE_RELU)
          sum = std::max(sum, 0.0);
        REQUIRE(static_cast<double>(results[at][static_cast<size_t>(row * d.n + column)]) ==
                Approx(sum).epsilon(1e-5).margin(1e-6 * static_cast<double>(d.k + 1)));
      }
  }
}
} // namespace

TEST_CASE("products with one right operand are those of each left operand", "[matmul_stacked]") {
  Random random(33);
  for (int trial = 0; trial < 40; ++trial) {
    drt_matmul_desc d =
        shape(random.integer(1, 40), random.integer(1, 80), random.integer(1, 50), trial % 2, random.integer(0, 1));
    d.epilogue = trial % 3 ? DRT_EPILOGUE_NONE : DRT_EPILOGUE_RELU;
    check(d, random.integer(1, 9), random.integer(1, 3), random);
  }
  check(shape(32, 256, 128, false, true), 16, 2, random); // several blocks of rows
  check(shape(17, 96, 320, true, false), 20, 3, random);
  check(shape(150, 64, 64, false, false), 3, 1, random); // each is copied nowhere
}

TEST_CASE("what has no plain product of float32 is refused", "[matmul_stacked]") {
  PrimitiveCache cache(1);
  drt_matmul_desc d = shape(2, 2, 2, false, false);
  d.dtype = DRT_F64;
  CHECK_THROWS_WITH(matmulStacked(cache, 0, d, {0, 1}, 1, nullptr, nullptr, nullptr), Catch::Contains("of float32"));
}

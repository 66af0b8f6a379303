//===- matmul_test.cpp - Matrix products against the definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>

using namespace drt;

namespace {
double activated(int32_t epilogue, double x) {
  switch (epilogue) {
  case DRT_EPILOGUE_RELU:
    return x > 0 ? x : 0;
  case DRT_EPILOGUE_TANH:
    return std::tanh(x);
  case DRT_EPILOGUE_SIGMOID:
    return 1 / (1 + std::exp(-x));
  default:
    return x;
  }
}

template <class T> double element(const drt_matmul_desc &d, const T *a, const T *b, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < d.k; ++k)
    sum += static_cast<double>(d.transpose_a ? a[k * d.m + row] : a[row * d.k + k]) *
           static_cast<double>(d.transpose_b ? b[column * d.k + k] : b[k * d.n + column]);
  return sum;
}

// Runs one call site twice, over different data, and compares every element. `Result`: of c and the bias.
template <class T, class Result = T> void check(drt_matmul_desc d, Random &random) {
  INFO("m " << d.m << " n " << d.n << " k " << d.k << " ta " << d.transpose_a << " tb " << d.transpose_b << " batch "
            << d.batch << " strides " << d.batch_stride_a << ' ' << d.batch_stride_b << " bias " << d.has_bias
            << " epilogue " << d.epilogue << " accumulate " << d.accumulate << " dtype " << d.dtype);
  // One core, or several that each compute some rows, or some matrices of the batch.
  const MatmulParts parts = matmulParts(d);
  const int cores = d.m * d.n * d.k < 1000 || parts.grain >= parts.count ? 1 : static_cast<int>(random.integer(1, 3));
  std::vector<PrimitiveCache> caches;
  for (int core = 0; core < cores; ++core)
    caches.emplace_back(1);
  for (int call = 0; call < 2; ++call) {
    auto a = random.tensor<T>((d.batch - 1) * d.batch_stride_a + d.m * d.k);
    auto b = random.tensor<T>((d.batch - 1) * d.batch_stride_b + d.k * d.n);
    auto bias = random.tensor<Result>(d.n);
    auto c = random.tensor<Result>(d.batch * d.m * d.n);
    auto before = c;
    if (!d.accumulate && std::numeric_limits<Result>::has_quiet_NaN) // must not be read
      std::fill(c.begin(), c.end(), std::numeric_limits<Result>::quiet_NaN());
    for (int core = 0; core < cores; ++core)
      if (Range part = rangeOf(parts.count, cores, core, 1); cores == 1 || !part.empty())
        matmul(caches[static_cast<size_t>(core)], 0, d, part, a.data(), b.data(), d.has_bias ? bias.data() : nullptr,
               c.data());
    size_t at = 0;
    for (int64_t item = 0; item < d.batch; ++item)
      for (int64_t row = 0; row < d.m; ++row)
        for (int64_t column = 0; column < d.n; ++column, ++at) {
          double expected =
              element(d, a.data() + item * d.batch_stride_a, b.data() + item * d.batch_stride_b, row, column);
          if (d.has_bias)
            expected += static_cast<double>(bias[static_cast<size_t>(column)]);
          expected = activated(d.epilogue, expected);
          if (d.accumulate)
            expected += static_cast<double>(before[at]);
          const double rounded = isHalf<Result> ? 1.0 / 128 : 2e-5;
          REQUIRE(static_cast<double>(c[at]) == Approx(expected).epsilon(rounded).margin(1e-5 * (d.k + 1)));
        }
  }
}

drt_matmul_desc describe(int32_t dtype, int64_t m, int64_t n, int64_t k) {
  drt_matmul_desc d = {};
  d.dtype = dtype, d.batch = 1, d.m = m, d.n = n, d.k = k;
  return d;
}

drt_matmul_desc drawMatrices(int32_t dtype, Random &random) {
  auto size = [&] { return random.integer(0, 5) == 0 ? random.integer(0, 2) : random.integer(3, 70); };
  drt_matmul_desc d = describe(dtype, size(), size(), size());
  d.transpose_a = random.integer(0, 1), d.transpose_b = random.integer(0, 1);
  d.has_bias = random.integer(0, 1), d.epilogue = random.integer(0, 3), d.accumulate = random.integer(0, 3) == 0;
  return d;
}
} // namespace

TEST_CASE("products of random shapes, transposes and epilogues", "[matmul]") {
  Random random(1);
  for (int trial = 0; trial < 150; ++trial) {
    drt_matmul_desc d = drawMatrices(DRT_F32, random);
    check<float>(d, random);
    d.dtype = DRT_F64;
    check<double>(d, random);
    d.epilogue %= 2;
    d.dtype = DRT_I32;
    check<int32_t>(d, random);
    d.dtype = DRT_I64;
    check<int64_t>(d, random);
  }
}

TEST_CASE("products of bfloat16 and float16, summed up in float32", "[matmul][bf16]") {
  Random random(11);
  for (int trial = 0; trial < 150; ++trial) {
    drt_matmul_desc d = drawMatrices(DRT_BF16, random);
    if (trial % 3 == 0) {
      d.batch = random.integer(2, 5);
      d.batch_stride_a = random.integer(0, 2) ? d.m * d.k : 0;
      d.batch_stride_b = random.integer(0, 2) ? d.k * d.n : 0;
    }
    check<BFloat16>(d, random);
    d.widens = 1;
    check<BFloat16, float>(d, random);
    d.dtype = DRT_F16;
    check<Float16, float>(d, random);
    d.widens = 0;
    check<Float16>(d, random);
  }
}

TEST_CASE("products whose right operand's rows collide in a cache", "[matmul]") {
  Random random(10);
  for (int32_t accumulate : {0, 1})
    for (int32_t transpose : {0, 1}) {
      for (auto [m, n] : {std::pair{3, 1024}, {20, 1024}, {13, 768}, {40, 512}}) {
        drt_matmul_desc d = describe(DRT_F32, m, n, 300);
        d.accumulate = accumulate, d.transpose_a = transpose, d.has_bias = 1 - accumulate,
        d.epilogue = DRT_EPILOGUE_RELU;
        check<float>(d, random);
      }
    }
}

TEST_CASE("gradients of weights whose rows collide in a cache", "[matmul]") {
  Random random(14);
  for (auto [m, n, k] : {std::array{256, 70, 300}, {100, 256, 257}, {512, 512, 256}, {40, 1280, 260}}) {
    drt_matmul_desc d = describe(DRT_F32, m, n, k);
    d.transpose_a = 1;
    check<float>(d, random);
  }
}

TEST_CASE("few rows with a transposed right operand", "[matmul]") {
  Random random(15);
  for (auto [m, n, k] : {std::array{8, 64, 64}, {32, 256, 300}, {192, 100, 1100}, {33, 1029, 70}})
    for (int32_t hasBias : {0, 1}) {
      drt_matmul_desc d = describe(DRT_F32, m, n, k);
      d.transpose_b = 1, d.has_bias = hasBias, d.epilogue = hasBias ? DRT_EPILOGUE_TANH : DRT_EPILOGUE_NONE;
      check<float>(d, random);
    }
}

TEST_CASE("no terms give the bias, or zero", "[matmul]") {
  Random random(2);
  for (int32_t dtype : {DRT_F32, DRT_F64})
    for (int32_t hasBias : {0, 1}) {
      drt_matmul_desc d = describe(dtype, 5, 40, 0);
      d.has_bias = hasBias;
      dtype == DRT_F32 ? check<float>(d, random) : check<double>(d, random);
    }
}

TEST_CASE("batches, whole and broadcast", "[matmul]") {
  Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    drt_matmul_desc d = describe(DRT_F32, random.integer(1, 20), random.integer(1, 20), random.integer(1, 20));
    d.batch = random.integer(2, 5);
    d.transpose_a = random.integer(0, 1), d.transpose_b = random.integer(0, 1);
    d.batch_stride_a = random.integer(0, 2) ? d.m * d.k : 0;
    d.batch_stride_b = random.integer(0, 2) ? d.k * d.n : 0;
    d.has_bias = random.integer(0, 1), d.epilogue = random.integer(0, 3), d.accumulate = random.integer(0, 3) == 0;
    check<float>(d, random);
    d.dtype = DRT_F64;
    check<double>(d, random);
  }
}

TEST_CASE("a type without a product is refused with the way out", "[matmul]") {
  PrimitiveCache cache(1);
  CHECK_THROWS_WITH(matmul(cache, 0, describe(DRT_BOOL, 1, 1, 1), {0, 1}, nullptr, nullptr, nullptr, nullptr),
                    Catch::Contains("cast the operands"));
}

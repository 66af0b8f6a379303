//===- streamed_test.cpp - Products whose large operand is fetched ahead -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/streamed_matmul.h"
#include "cpu/kernels/streamed_update.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

using namespace drt;

namespace {
drt_matmul_desc product(int64_t m, int64_t n, int64_t k) {
  drt_matmul_desc desc = {};
  desc.dtype = DRT_F32, desc.batch = 1, desc.m = m, desc.n = n, desc.k = k;
  return desc;
}

Approx close(double expected, int64_t terms) {
  return Approx(expected).epsilon(1e-5).margin(1e-6 * static_cast<double>(terms + 1));
}

// Columns [begin, end) of all replicas' products. Every replica's operands have room behind them.
void checkProduct(const TileKernels &kernels, const drt_matmul_desc &d, int parts, int64_t begin, int64_t end,
                  Random &random) {
  INFO("rows of a tile " << kernels.rows << " m " << d.m << " n " << d.n << " k " << d.k << " tb " << d.transpose_b
                         << " replicas " << parts << " columns " << begin << " to " << end);
  const int64_t strideA = d.m * d.k + 5, strideC = d.m * d.n + 3;
  auto a = random.tensor<float>(strideA * parts), b = random.tensor<float>(d.k * d.n), bias = random.tensor<float>(d.n);
  auto c = random.tensor<float>(strideC * parts), before = c;
  Scratch scratch;
  StreamedMatmul streamed(kernels, d, parts, begin, end, scratch);
  streamed.run({a.data(), strideA * 4}, b.data(), bias.data(), c.data(), strideC * 4);
  std::vector<float> first = c;
  streamed.run({a.data(), strideA * 4}, b.data(), bias.data(), c.data(), strideC * 4);
  REQUIRE(c == first);
  for (int64_t at = 0; at < strideC * parts; ++at) {
    int64_t replica = at / strideC, row = at % strideC / d.n, column = at % strideC % d.n;
    size_t place = static_cast<size_t>(at);
    if (row >= d.m || column < begin || column >= end) {
      REQUIRE(c[place] == before[place]);
      continue;
    }
    double sum = d.has_bias ? static_cast<double>(bias[static_cast<size_t>(column)]) : 0.0;
    for (int64_t i = 0; i < d.k; ++i)
      sum += static_cast<double>(a[static_cast<size_t>(replica * strideA + row * d.k + i)]) *
             static_cast<double>(b[static_cast<size_t>(d.transpose_b ? column * d.k + i : i * d.n + column)]);
    if (d.epilogue == DRT_EPILOGUE_RELU)
      sum = std::max(sum, 0.0);
    REQUIRE(static_cast<double>(c[place]) == close(sum, d.k));
  }
}

void checkUpdate(const TileKernels &kernels, drt_matmul_desc d, int parts, Random &random) {
  d.transpose_a = 1;
  INFO("rows of a tile " << kernels.rows << " m " << d.m << " n " << d.n << " k " << d.k << " replicas " << parts);
  REQUIRE(StreamedUpdate::suits(d, parts));
  const int64_t strideA = d.m * d.k + 5, strideB = d.k * d.n + 3;
  auto a = random.tensor<float>(strideA * parts), b = random.tensor<float>(strideB * parts);
  auto variable = random.tensor<float>(d.m * d.n);
  void *variables[] = {variable.data()};
  Scratch scratch;
  StreamedUpdate streamed(kernels, d, parts, scratch);
  streamed.packRight({b.data(), strideB * 4});
  for (int64_t row = 0; row < d.m; row += streamed.blockRows()) {
    int64_t rows = std::min(streamed.blockRows(), d.m - row);
    const float *block = streamed.block({a.data(), strideA * 4}, row, rows, 0.5f, variables, 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t column = 0; column < d.n; ++column) {
        double sum = 0;
        for (int64_t step = 0; step < d.k * parts; ++step) {
          int64_t replica = step / d.k, own = step % d.k;
          sum += static_cast<double>(a[static_cast<size_t>(replica * strideA + own * d.m + row + i)]) *
                 static_cast<double>(b[static_cast<size_t>(replica * strideB + own * d.n + column)]);
        }
        REQUIRE(static_cast<double>(block[i * streamed.pitch() + column]) == close(0.5 * sum, d.k * parts));
      }
  }
}

// On each kind of kernels that this machine has.
template <class Check> void onEachMachine(Check check) {
  if (!tileKernels())
    WARN("this machine has neither AVX-512 nor AVX2: nothing is tested");
  for (auto kernels = allTileKernels(); *kernels; ++kernels)
    check(**kernels);
}
} // namespace

TEST_CASE("a product with a matrix that streams is that product, at any size", "[streamed]") {
  onEachMachine([](const TileKernels &kernels) {
    Random random(21);
    for (int trial = 0; trial < 60; ++trial) {
      int parts = random.integer(1, 4);
      drt_matmul_desc d = product(random.integer(8, 20), random.integer(1, 130), random.integer(16, 90));
      d.transpose_b = trial % 2, d.has_bias = random.integer(0, 1);
      d.epilogue = random.integer(0, 1) ? DRT_EPILOGUE_RELU : DRT_EPILOGUE_NONE;
      int64_t begin = random.integer(0, static_cast<int32_t>(d.n) - 1);
      checkProduct(kernels, d, parts, begin, random.integer(static_cast<int32_t>(begin) + 1, static_cast<int32_t>(d.n)),
                   random);
    }
  });
}

TEST_CASE("a matrix of several chunks streams by chunks", "[streamed]") {
  onEachMachine([](const TileKernels &kernels) {
    Random random(22);
    for (int transposed : {0, 1}) {
      drt_matmul_desc d = product(13, 603, 531); // chunks of 256 x 256, of 512 steps, and what is left of them
      d.transpose_b = transposed, d.has_bias = 1;
      checkProduct(kernels, d, 2, 0, 603, random);
      checkProduct(kernels, d, 2, 16, 304, random);
    }
  });
}

TEST_CASE("a gradient's blocks are its rows, at any size", "[streamed]") {
  onEachMachine([](const TileKernels &kernels) {
    Random random(23);
    for (int trial = 0; trial < 60; ++trial)
      checkUpdate(kernels, product(random.integer(1, 60), random.integer(16, 140), random.integer(8, 40)),
                  random.integer(1, 4), random);
    checkUpdate(kernels, product(29, 1024, 9), 2, random); // rows apart
    checkUpdate(kernels, product(500, 500, 8), 2, random); // rows together, several blocks
  });
}

TEST_CASE("products that do not stay in cache, or are none of float32, are left to the library", "[streamed]") {
  drt_matmul_desc d = product(64, 2048, 2048);
  CHECK(StreamedMatmul::suits(d, 2));
  CHECK_FALSE(StreamedMatmul::suits(d, 4));
  d.m = 16; // the library packs few rows' matrix faster
  CHECK_FALSE(StreamedMatmul::suits(d, 2));
  d.transpose_b = 1;
  CHECK(StreamedMatmul::suits(d, 2));
  d.m = 1;
  CHECK_FALSE(StreamedMatmul::suits(d, 2));
  d = product(2048, 2048, 64), d.transpose_a = 1;
  CHECK(StreamedUpdate::suits(d, 2));
  CHECK_FALSE(StreamedUpdate::suits(d, 4));
  d.dtype = DRT_F64;
  CHECK_FALSE(StreamedUpdate::suits(d, 2));
  d.dtype = DRT_F32, d.transpose_b = 1;
  CHECK_FALSE(StreamedUpdate::suits(d, 2));
}

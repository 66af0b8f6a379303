//===- matmul_joined_test.cpp - The products of all replicas with one matrix -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <thread>

using namespace drt;

TEST_CASE("each replica's rows meet the whole of the shared matrix", "[matmul_joined]") {
  Random random(11);
  for (int trial = 0; trial < 60; ++trial) {
    drt_matmul_desc d = {};
    d.dtype = DRT_F32;
    d.batch = 1, d.m = random.integer(1, 12), d.n = random.integer(1, 70), d.k = random.integer(1, 40);
    d.transpose_b = random.integer(0, 1), d.has_bias = random.integer(0, 1);
    d.epilogue = random.integer(0, 1) ? DRT_EPILOGUE_RELU : DRT_EPILOGUE_NONE;
    int parts = random.integer(1, 4);
    // Operands behind each other, and with room in between.
    int64_t strideA = d.m * d.k + random.integer(0, 1) * 16, strideC = d.m * d.n + random.integer(0, 1) * 16;
    auto a = random.tensor<float>(strideA * parts), b = random.tensor<float>(d.k * d.n),
         bias = random.tensor<float>(d.n);
    auto c = random.tensor<float>(strideC * parts), before = c;
    INFO("m " << d.m << " n " << d.n << " k " << d.k << " tb " << d.transpose_b << " replicas " << parts);

    std::vector<std::thread> replicas;
    for (int part = 0; part < parts; ++part)
      replicas.emplace_back([&, part] {
        PrimitiveCache cache(1);
        matmulJoined(cache, 0, d, {part, parts}, {a.data(), strideA * 4, parts}, b.data(),
                     d.has_bias ? bias.data() : nullptr, c.data(), strideC * 4);
      });
    for (std::thread &replica : replicas)
      replica.join();

    for (int64_t replica = 0; replica < parts; ++replica) {
      for (int64_t at = 0; at < d.m * d.n; ++at) {
        int64_t row = at / d.n, column = at % d.n;
        double sum = d.has_bias ? static_cast<double>(bias[static_cast<size_t>(column)]) : 0.0;
        for (int64_t k = 0; k < d.k; ++k)
          sum += static_cast<double>(a[static_cast<size_t>(replica * strideA + row * d.k + k)]) *
                 static_cast<double>(b[static_cast<size_t>(d.transpose_b ? column * d.k + k : k * d.n + column)]);
        if (d.epilogue == DRT_EPILOGUE_RELU)
          sum = std::max(sum, 0.0);
        REQUIRE(static_cast<double>(c[static_cast<size_t>(replica * strideC + at)]) ==
                Approx(sum).epsilon(1e-5).margin(1e-5 * (d.k + 1)));
      }
      // What lies between the replicas' results is not theirs.
      for (int64_t at = d.m * d.n; at < strideC; ++at)
        REQUIRE(c[static_cast<size_t>(replica * strideC + at)] == before[static_cast<size_t>(replica * strideC + at)]);
    }
  }
}

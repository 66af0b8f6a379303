//===- matmul_update_test.cpp - Updates from a product over the joined batch -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <thread>

using namespace drt;

namespace {
// variable -= gradient, and how often each element was visited.
template <class T> void descend(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
  T *variable = static_cast<T *>(arguments[0]);
  int32_t *visits = static_cast<int32_t *>(arguments[1]);
  for (int64_t i = begin; i < end; ++i) {
    variable[i] -= static_cast<const T *>(gradient)[i - begin];
    ++visits[i];
  }
}

// `gap`: elements between the replicas' operands, 0 where they are joined.
template <class T> void check(drt_matmul_desc d, int parts, int64_t gap, Random &random, int cores = 1) {
  INFO("m " << d.m << " n " << d.n << " k " << d.k << " ta " << d.transpose_a << " tb " << d.transpose_b << " replicas "
            << parts << " gap " << gap << " dtype " << d.dtype);
  int64_t strideA = d.m * d.k + gap, strideB = d.k * d.n + gap;
  auto a = random.tensor<T>(strideA * parts), b = random.tensor<T>(strideB * parts);
  auto variable = random.tensor<T>(d.m * d.n), before = variable;
  std::vector<int32_t> visits(variable.size());
  void *arguments[] = {variable.data(), visits.data()};
  double scale = 1.0 / parts;
  const int shares = parts * cores;
  auto replica = [&](int part) {
    PrimitiveCache cache(1);
    int64_t bytes = sizeof(T);
    matmulUpdate(cache, 0, d, {part, shares}, {a.data(), strideA * bytes, parts}, {b.data(), strideB * bytes, parts},
                 scale, descend<T>, arguments);
  };
  std::vector<std::thread> others;
  for (int part = 1; part < shares; ++part)
    others.emplace_back(replica, part);
  replica(0);
  for (std::thread &other : others)
    other.join();
  for (int64_t row = 0; row < d.m; ++row)
    for (int64_t column = 0; column < d.n; ++column) {
      double sum = 0;
      for (int64_t replica = 0; replica < parts; ++replica)
        for (int64_t k = 0; k < d.k; ++k) {
          int64_t atA = replica * strideA + (d.transpose_a ? k * d.m + row : row * d.k + k);
          int64_t atB = replica * strideB + (d.transpose_b ? column * d.k + k : k * d.n + column);
          sum += static_cast<double>(a[static_cast<size_t>(atA)]) * static_cast<double>(b[static_cast<size_t>(atB)]);
        }
      size_t at = static_cast<size_t>(row * d.n + column);
      REQUIRE(visits[at] == 1);
      REQUIRE(static_cast<double>(variable[at]) ==
              Approx(static_cast<double>(before[at]) - scale * sum).epsilon(1e-5).margin(1e-5 * (d.k + 1)));
    }
}
} // namespace

TEST_CASE("every row is updated once, from the sum over the replicas", "[matmul_update]") {
  Random random(4);
  for (int trial = 0; trial < 60; ++trial) {
    drt_matmul_desc d = {};
    d.batch = 1, d.m = random.integer(1, 40), d.n = random.integer(1, 40), d.k = random.integer(0, 20);
    d.transpose_a = random.integer(0, 3) != 0, d.transpose_b = random.integer(0, 3) == 0;
    int parts = random.integer(1, 4);
    int64_t gap = random.integer(0, 1) * 16;
    d.dtype = DRT_F32;
    check<float>(d, parts, gap, random, static_cast<int>(random.integer(1, 3)));
    d.dtype = DRT_F64;
    check<double>(d, parts, gap, random);
  }
}

TEST_CASE("a share of several blocks, whose operands do not stay in cache, is updated block by block",
          "[matmul_update]") {
  Random random(6);
  drt_matmul_desc d = {};
  d.batch = 1, d.m = 500, d.n = 520, d.k = 320, d.transpose_a = 1, d.dtype = DRT_F32;
  check<float>(d, 2, 16, random);
}

TEST_CASE("replicas' shares that are long are products of their own", "[matmul_update]") {
  Random random(5);
  drt_matmul_desc d = {};
  d.batch = 1, d.m = 24, d.n = 20, d.transpose_a = 1;
  d.k = 600;
  for (int parts : {1, 2, 3}) {
    d.dtype = DRT_F32;
    check<float>(d, parts, 16, random);
    d.dtype = DRT_F64;
    check<double>(d, parts, 0, random);
  }
}

TEST_CASE("a product larger than a block is cut at rows", "[matmul_update]") {
  Random random(5);
  drt_matmul_desc d = {};
  d.dtype = DRT_F32, d.batch = 1, d.m = 401, d.n = 1030, d.k = 2, d.transpose_a = 1;
  check<float>(d, 2, 0, random);
  d.m = 5, d.n = 1024, d.k = 150; // cut along k
  check<float>(d, 2, 0, random);
  d.m = 3, d.n = 150001, d.k = 1;
  check<float>(d, 2, 16, random);
}

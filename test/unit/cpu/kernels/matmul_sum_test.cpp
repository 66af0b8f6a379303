//===- matmul_sum_test.cpp - Sums of products -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/streamed_sum.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace drt;

namespace {
template <class T> struct Terms {
  std::vector<std::vector<T>> matrices;
  std::vector<void *> pointers; // of the left ones, then of the right ones

  Terms(const drt_matmul_desc &d, int64_t terms, Random &random) {
    for (int64_t i = 0; i < 2 * terms; ++i)
      matrices.push_back(random.tensor<T>(d.k * (i < terms ? d.m : d.n)));
    for (std::vector<T> &matrix : matrices)
      pointers.push_back(matrix.data());
  }

  double sum(const drt_matmul_desc &d, int64_t row, int64_t column) const {
    double sum = 0;
    const size_t terms = matrices.size() / 2;
    for (size_t term = 0; term < terms; ++term)
      for (int64_t step = 0; step < d.k; ++step)
        sum += static_cast<double>(matrices[term][static_cast<size_t>(step * d.m + row)]) *
               static_cast<double>(matrices[terms + term][static_cast<size_t>(step * d.n + column)]);
    return sum;
  }
};

drt_matmul_desc shape(int64_t m, int64_t n, int64_t k, int32_t dtype) {
  drt_matmul_desc desc = {};
  desc.dtype = dtype, desc.batch = 1, desc.m = m, desc.n = n, desc.k = k, desc.transpose_a = 1;
  return desc;
}

template <class T>
void requireRows(const drt_matmul_desc &d, const Terms<T> &terms, Range rows, double scale, const T *c) {
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t column = 0; column < d.n; ++column, ++c)
      REQUIRE(static_cast<double>(*c) ==
              Approx(scale * terms.sum(d, row, column))
                  .epsilon(1e-5)
                  .margin(1e-6 * static_cast<double>(d.k * static_cast<int64_t>(terms.matrices.size()) + 1)));
}

// The rows that each of `cores` has; what is written is what is asked for.
template <class T> void check(const drt_matmul_desc &d, int64_t count, int64_t cores, Random &random) {
  INFO("m " << d.m << " n " << d.n << " k " << d.k << " terms " << count << " dtype " << d.dtype);
  Terms<T> terms(d, count, random);
  std::vector<T> c(static_cast<size_t>(d.m * d.n), T(7));
  CHECK(matmulSumParts(d, count).count == d.m);
  for (int64_t core = 0; core < cores; ++core) {
    PrimitiveCache cache(1);
    const Range rows = rangeOf(d.m, cores, core, 1);
    for (int call = 0; call < 2 && !rows.empty(); ++call)
      matmulSum(cache, 0, d, rows, count, terms.pointers.data(), c.data());
  }
  requireRows<T>(d, terms, {0, d.m}, 1.0, c.data());
}
} // namespace

TEST_CASE("products of any size are added up", "[matmul_sum]") {
  Random random(31);
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t m = random.integer(1, 40), n = random.integer(1, 40), k = random.integer(1, 20);
    const int64_t terms = random.integer(1, 6), cores = random.integer(1, 3);
    check<float>(shape(m, n, k, DRT_F32), terms, cores, random);
    check<double>(shape(m, n, k, DRT_F64), terms, cores, random);
  }
  check<float>(shape(40, 24, 300, DRT_F32), 3, 2, random); // terms that are worth a product of the library each
}

TEST_CASE("a long sum is cut into blocks of steps, across its terms", "[matmul_sum]") {
  if (!tileKernels())
    WARN("this machine has neither AVX-512 nor AVX2: nothing is tested");
  for (auto kernels = allTileKernels(); *kernels; ++kernels) {
    Random random(32);
    for (int trial = 0; trial < 30; ++trial) {
      const drt_matmul_desc d = shape(random.integer(8, 50), random.integer(16, 120), random.integer(1, 90), DRT_F32);
      const int64_t count = random.integer(2, 12);
      INFO("rows of a tile " << (*kernels)->rows << " m " << d.m << " n " << d.n << " k " << d.k << " terms " << count);
      REQUIRE(StreamedSum::suits(d));
      Terms<float> terms(d, count, random);
      Scratch scratch;
      StreamedSum sum(**kernels, d, count, d.m, scratch);
      for (Range rows : {Range{0, d.m}, Range{3, 8}}) {
        std::vector<float> c(static_cast<size_t>(rows.size() * d.n + 1), 7.0f), again = c;
        sum.run(terms.pointers.data(), terms.pointers.data() + count, rows, 0.5f, c.data());
        CHECK(c.back() == 7.0f);
        requireRows(d, terms, rows, 0.5, c.data());
        sum.run(terms.pointers.data(), terms.pointers.data() + count, rows, 0.5f, again.data());
        REQUIRE(again == c);
      }
    }
    const drt_matmul_desc d = shape(30, 600, 50, DRT_F32); // several chunks of columns
    Terms<float> terms(d, 9, random);
    Scratch scratch;
    StreamedSum sum(**kernels, d, 9, d.m, scratch);
    std::vector<float> c(static_cast<size_t>(d.m * d.n));
    sum.run(terms.pointers.data(), terms.pointers.data() + 9, {0, d.m}, 1.0f, c.data());
    requireRows(d, terms, {0, d.m}, 1.0, c.data());
  }
}

TEST_CASE("what is no sum of plain products of floats is refused", "[matmul_sum]") {
  PrimitiveCache cache(1);
  drt_matmul_desc d = shape(2, 2, 2, DRT_I32);
  CHECK_THROWS_WITH(matmulSum(cache, 0, d, {0, 2}, 0, nullptr, nullptr), Catch::Contains("float32 or float64"));
  d.dtype = DRT_F32, d.transpose_b = 1;
  CHECK_THROWS_WITH(matmulSum(cache, 0, d, {0, 2}, 0, nullptr, nullptr), Catch::Contains("plain ones"));
}

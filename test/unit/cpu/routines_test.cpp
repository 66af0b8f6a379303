//===- routines_test.cpp - Sorting, linear algebra, candidates, draws -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace {

template <typename... T> std::vector<void *> addressesOf(T &...tensors) {
  return {static_cast<void *>(tensors.data())...};
}

} // namespace

TEST_CASE("the largest of a row, the first of equal ones first, NaN last") {
  std::vector<float> x = {1, 3, std::numeric_limits<float>::quiet_NaN(), 3, -1, 0, 0, 0, 0, 5};
  std::vector<float> values(6);
  std::vector<int32_t> indices(6);
  const int64_t p[] = {DRT_F32, 2, 5, 3, DRT_I32};
  drt_routine_top_k(nullptr, p, addressesOf(x, values, indices).data());
  CHECK(values == std::vector<float>{3, 3, 1, 5, 0, 0});
  CHECK(indices == std::vector<int32_t>{1, 3, 0, 4, 0, 1});
}

TEST_CASE("factors of a matrix give it back") {
  std::vector<double> a = {4, 2, 1, 2, 5, 3, 1, 3, 6}, l(9), inverse(9), q(9), r(9), sign(1), log(1);
  const int64_t square[] = {DRT_F64, 1, 3, 0}, rectangle[] = {DRT_F64, 1, 3, 3, 0};
  drt_routine_cholesky(nullptr, square, addressesOf(a, l).data());
  drt_routine_matrix_inverse(nullptr, square, addressesOf(a, inverse).data());
  drt_routine_qr(nullptr, rectangle, addressesOf(a, q, r).data());
  drt_routine_log_matrix_determinant(nullptr, square, addressesOf(a, sign, log).data());
  const auto product = [](const std::vector<double> &x, const std::vector<double> &y, int i, int j, bool transposed) {
    double sum = 0;
    for (int k = 0; k < 3; ++k)
      sum += x[3 * i + k] * (transposed ? y[3 * j + k] : y[3 * k + j]);
    return sum;
  };
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      CHECK(product(l, l, i, j, true) == Approx(a[3 * i + j]));
      CHECK(product(a, inverse, i, j, false) == Approx(i == j).margin(1e-12));
      CHECK(product(q, r, i, j, false) == Approx(a[3 * i + j]));
      CHECK(product(q, q, i, j, true) == Approx(i == j).margin(1e-12));
    }
  CHECK(l[1] == 0);
  CHECK(sign[0] == 1);
  CHECK(std::exp(log[0]) == Approx(67));
}

TEST_CASE("a CTC loss is that of all paths together") {
  // Two steps, one label between blanks: the paths are 0 0, 0 blank and blank 0.
  std::vector<double> logits = {0.3, -0.2, 1.1, -0.4}, loss(1), gradient(4);
  std::vector<int32_t> labels = {0, -1, -1}, lengths = {2};
  const int64_t p[] = {DRT_F64, 1, 2, 2, 3, 0, 1, 0};
  drt_routine_ctc_loss(nullptr, p, addressesOf(logits, labels, lengths, loss, gradient).data());
  const auto probability = [&](const std::vector<double> &x, int step, int label) {
    return std::exp(x[2 * step + label]) / (std::exp(x[2 * step]) + std::exp(x[2 * step + 1]));
  };
  const auto lossOf = [&](const std::vector<double> &x) {
    return -std::log(1 - probability(x, 0, 1) * probability(x, 1, 1));
  };
  CHECK(loss[0] == Approx(lossOf(logits)));
  for (size_t i = 0; i < logits.size(); ++i) {
    std::vector<double> above = logits, below = logits;
    above[i] += 1e-5;
    below[i] -= 1e-5;
    CHECK(gradient[i] == Approx((lossOf(above) - lossOf(below)) / 2e-5).margin(1e-9));
  }
}

TEST_CASE("a triangle is solved with, and its adjoint") {
  std::vector<float> a = {2, 9, 1, 4}, b = {2, 9}, x(2);
  const int64_t lower[] = {DRT_F32, 1, 2, 1, 1, 0}, adjoint[] = {DRT_F32, 1, 2, 1, 1, 1};
  drt_routine_matrix_triangular_solve(nullptr, lower, addressesOf(a, b, x).data());
  CHECK(x == std::vector<float>{1, 2});
  drt_routine_matrix_triangular_solve(nullptr, adjoint, addressesOf(a, b, x).data());
  CHECK(x == std::vector<float>{-0.125f, 2.25f});
}

TEST_CASE("distinct candidates are distinct, and those that are true classes are found") {
  std::vector<int64_t> classes = {0, 3, 9, 1}, sampled(10), positions(8);
  std::vector<float> expectedTrue(4), expected(10), weights(8);
  std::vector<int32_t> rows(8), state = {0, 0, 0, 0, 7, 0};
  const int64_t p[] = {1, 4, 10, 10, 1}, hits[] = {2, 2, 10, 8};
  drt_routine_sample_candidates(nullptr, p, addressesOf(state, classes, sampled, expectedTrue, expected).data());
  CHECK(std::set<int64_t>(sampled.begin(), sampled.end()).size() == 10);
  CHECK(expectedTrue[0] > expectedTrue[1]);
  drt_routine_accidental_hits(nullptr, hits, addressesOf(classes, sampled, rows, positions, weights).data());
  CHECK(rows == std::vector<int32_t>{0, 0, 1, 1, -1, -1, -1, -1});
  for (int i = 0; i < 4; ++i)
    CHECK(sampled[positions[i]] == classes[i]);
  CHECK(weights[4] == 0);
}

TEST_CASE("permutations are TensorFlow's") {
  std::vector<int32_t> order(9), alone(1), state = {0, 0, 22, 0, 11, 0};
  const int64_t nine[] = {9}, one[] = {1};
  drt_routine_random_permutation(nullptr, nine, addressesOf(state, order).data());
  CHECK(order == std::vector<int32_t>{5, 0, 6, 8, 4, 7, 2, 1, 3});
  state[0] = 2; // eight words are two positions
  drt_routine_random_permutation(nullptr, nine, addressesOf(state, order).data());
  CHECK(order == std::vector<int32_t>{8, 3, 2, 1, 7, 4, 5, 0, 6});
  drt_routine_random_permutation(nullptr, one, addressesOf(state, alone).data());
  CHECK(alone == std::vector<int32_t>{0});
}

TEST_CASE("special functions have TensorFlow's values at the ends of their domains") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(drt_special_bessel_j0(infinity)));
  CHECK(std::isnan(drt_special_bessel_j1(-infinity)));
  CHECK(std::isnan(drt_special_bessel_y0(infinity)));
  CHECK(drt_special_bessel_y1(-infinity) == -infinity);
  CHECK(std::isnan(drt_special_expint(infinity)));
  CHECK(std::isnan(drt_special_spence(infinity)));
  CHECK(drt_special_fresnel_sin(-1e10) == -0.5);
  CHECK(drt_special_dawsn(-1e10) == 0.5e-10);
  CHECK(drt_special_zeta(infinity, 2) == 0);
  CHECK(drt_special_zeta(infinity, 1) == 1);
  CHECK(drt_special_zeta(2, infinity) == 0);
  CHECK(drt_special_zeta(1e30, 1e30) == 0);
  CHECK(drt_special_polygamma(1, infinity) == 0);
  CHECK(drt_special_igamma(infinity, 2) == 0);
  CHECK(drt_special_igammac(infinity, infinity) == 1);
  CHECK(drt_special_igamma(0, 0) == 0);
  CHECK(drt_special_igamma_grad_a(infinity, 2) == 0);
}

TEST_CASE("gamma and Poisson numbers have their means and variances") {
  for (double parameter : {0.4, 3.0, 25.0}) {
    double sums[2] = {}, squares[2] = {};
    constexpr int count = 40000;
    for (int i = 0; i < count; ++i) {
      const double u = (i + 0.5) / count;
      const double drawn[2] = {drt_special_draw_gamma(parameter, u), drt_special_draw_poisson(parameter, u)};
      for (int k = 0; k < 2; ++k) {
        sums[k] += drawn[k];
        squares[k] += drawn[k] * drawn[k];
      }
    }
    for (int k = 0; k < 2; ++k) {
      const double mean = sums[k] / count;
      CHECK(mean == Approx(parameter).epsilon(0.03));
      CHECK(squares[k] / count - mean * mean == Approx(parameter).epsilon(0.06));
    }
  }
}

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
#include <utility>
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

namespace {

/// x y of matrices [rows, inner] and [inner, columns].
std::vector<double> multiply(const std::vector<double> &x, const std::vector<double> &y, int inner) {
  const int rows = static_cast<int>(x.size()) / inner, columns = static_cast<int>(y.size()) / inner;
  std::vector<double> product(rows * columns, 0.0);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < inner; ++k)
      for (int j = 0; j < columns; ++j)
        product[i * columns + j] += x[i * inner + k] * y[k * columns + j];
  return product;
}
std::vector<double> transpose(const std::vector<double> &x, int columns) {
  const int rows = static_cast<int>(x.size()) / columns;
  std::vector<double> turned(x.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      turned[j * rows + i] = x[i * columns + j];
  return turned;
}
std::vector<double> diagonal(const std::vector<double> &x) {
  const size_t n = x.size();
  std::vector<double> matrix(n * n, 0.0);
  for (size_t i = 0; i < n; ++i)
    matrix[i * n + i] = x[i];
  return matrix;
}
void checkNear(const std::vector<double> &x, const std::vector<double> &y) {
  REQUIRE(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(x[i] == Approx(y[i]).margin(1e-12));
}

} // namespace

TEST_CASE("eigenvalues ascend, and vectors give the matrix back, of which a triangle is read") {
  std::vector<double> a = {4, 2, 1, 2, 5, 3, 1, 3, 6}, given = {4, 9, 9, 2, 5, 9, 1, 3, 6}, e(3), v(9), alone(3);
  const int64_t p[] = {DRT_F64, 1, 3, 1}, values[] = {DRT_F64, 1, 3, 0};
  drt_routine_self_adjoint_eig(nullptr, p, addressesOf(given, e, v).data());
  drt_routine_self_adjoint_eig(nullptr, values, addressesOf(given, alone).data());
  CHECK((e[0] < e[1] && e[1] < e[2]));
  checkNear(alone, e);
  checkNear(multiply(multiply(v, diagonal(e), 3), transpose(v, 3), 3), a);
}

TEST_CASE("singular values descend, and vectors give the matrix back") {
  // Two of them, wide.
  std::vector<double> a = {1, 2, 3, 4, 5, 7, 0, 0, 0, 0, 2, 0}, s(4), u(8), v(12), alone(4), fullU(8), fullV(18);
  const int64_t thin[] = {DRT_F64, 2, 2, 3, 1, 0}, full[] = {DRT_F64, 2, 2, 3, 1, 1},
                values[] = {DRT_F64, 2, 2, 3, 0, 0};
  drt_routine_svd(nullptr, thin, addressesOf(a, s, u, v).data());
  drt_routine_svd(nullptr, values, addressesOf(a, alone).data());
  drt_routine_svd(nullptr, full, addressesOf(a, s, fullU, fullV).data());
  checkNear(alone, s);
  for (int number = 0; number < 2; ++number) {
    const auto part = [&](const std::vector<double> &x) {
      return std::vector<double>(x.begin() + number * (x.size() / 2), x.begin() + (number + 1) * (x.size() / 2));
    };
    CHECK(part(s)[0] >= part(s)[1]);
    checkNear(multiply(multiply(part(u), diagonal(part(s)), 2), transpose(part(v), 2), 2), part(a));
    checkNear(multiply(transpose(part(fullV), 3), part(fullV), 3), diagonal({1, 1, 1}));
  }
  CHECK(s[2] == Approx(2));
}

TEST_CASE(
    "of what is no number there are neither eigenvalues nor singular values, and no matrix beside it loses its own") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a = {nan, 0, 0, 1, 2, 0, 0, 3}, e(4), v(8), s(4);
  const int64_t eig[] = {DRT_F32, 2, 2, 1}, svd[] = {DRT_F32, 2, 2, 2, 0, 0};
  drt_routine_self_adjoint_eig(nullptr, eig, addressesOf(a, e, v).data());
  drt_routine_svd(nullptr, svd, addressesOf(a, s).data());
  CHECK((std::isnan(e[0]) && std::isnan(v[3]) && std::isnan(s[1])));
  CHECK((e[2] == Approx(2) && e[3] == Approx(3) && s[2] == Approx(3) && s[3] == Approx(2)));
}

TEST_CASE("LAPACK's forms of factors: reflections, and exchanges of rows") {
  // Tall; the first column needs no reflection.
  std::vector<double> a = {2, 1, 0, 3, 0, 4}, factors(6), taus(2), q(6);
  const int64_t p[] = {DRT_F64, 1, 3, 2}, product[] = {DRT_F64, 1, 3, 2, 2};
  drt_routine_householder_factors(nullptr, p, addressesOf(a, factors, taus).data());
  drt_routine_householder_product(nullptr, product, addressesOf(factors, taus, q).data());
  CHECK(taus[0] == 0);
  CHECK(factors[3] == Approx(-5));
  checkNear(multiply(q, {factors[0], factors[1], 0, factors[3]}, 2), a);
  checkNear(multiply(transpose(q, 2), q, 3), {1, 0, 0, 1});

  std::vector<double> b = {0, 1, 2, 3, 4, 5}, lu(6);
  std::vector<int32_t> pivots(2);
  std::vector<int64_t> rows(3);
  const int64_t asPivots[] = {DRT_F64, 1, 3, 2, DRT_I32}, asRows[] = {DRT_F64, 1, 3, 2, DRT_I64};
  drt_routine_lu_pivots(nullptr, asPivots, addressesOf(b, lu, pivots).data());
  drt_routine_lu(nullptr, asRows, addressesOf(b, lu, rows).data());
  CHECK(pivots == std::vector<int32_t>{3, 3});
  CHECK(rows == std::vector<int64_t>{2, 0, 1});
  const std::vector<double> exchanged = multiply({1, 0, lu[2], 1, lu[4], lu[5]}, {lu[0], lu[1], 0, lu[3]}, 2);
  for (int i = 0; i < 3; ++i)
    checkNear({exchanged[2 * i], exchanged[2 * i + 1]}, {b[2 * rows[i]], b[2 * rows[i] + 1]});
}

TEST_CASE("least squares and square roots") {
  std::vector<double> a = {1, 0, 1, 1, 1, 2}, b = {1, 2, 2}, l2 = {0.5}, none = {0}, x(2), exact(2);
  const int64_t fast[] = {DRT_F64, 1, 3, 2, 1, 1}, slow[] = {DRT_F64, 1, 3, 2, 1, 0};
  drt_routine_matrix_solve_ls(nullptr, fast, addressesOf(a, b, l2, x).data());
  drt_routine_matrix_solve_ls(nullptr, slow, addressesOf(a, b, none, exact).data());
  // (a'a + 0.5) x = a'b.
  CHECK(3.5 * x[0] + 3 * x[1] == Approx(5));
  CHECK(3 * x[0] + 5.5 * x[1] == Approx(6));
  CHECK(exact[0] == Approx(7.0 / 6));
  CHECK(exact[1] == Approx(0.5));

  std::vector<double> square = {4, 2, 1, 2, 5, 3, 1, 3, 6}, root(9);
  const int64_t p[] = {DRT_F64, 1, 3};
  drt_routine_matrix_square_root(nullptr, p, addressesOf(square, root).data());
  checkNear(multiply(root, root, 3), square);
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

TEST_CASE("candidates by weights are TensorFlow's") {
  std::vector<int64_t> classes = {1, 4}, sampled(4);
  std::vector<float> weights = {0, 3.3437016f, 1, 0, 2.2795072f, 4.7568283f, 1.6817929f}, expectedTrue(2), expected(4);
  std::vector<int32_t> state = {0, 0, 22, 0, 11, 0};
  const int64_t p[] = {2, 2, 4, 7, 0};
  drt_routine_sample_candidates(nullptr, p,
                                addressesOf(state, classes, weights, sampled, expectedTrue, expected).data());
  CHECK(sampled == std::vector<int64_t>{4, 6, 5, 1});
  CHECK(expectedTrue[0] == Approx(1.023961067199707));
  CHECK(expected[1] == Approx(0.5150251388549805));
}

TEST_CASE("windows of fractional pools are TensorFlow's") {
  std::vector<int32_t> state = {0, 0, 22, 0, 11, 0};
  std::vector<int64_t> rows(8), columns(6);
  const int64_t random[] = {11, 7, 7, 5, 0, 2}, pseudo[] = {11, 7, 7, 5, 1, 1};
  drt_routine_fractional_sequences(nullptr, random, addressesOf(state, rows, columns).data());
  CHECK(rows == std::vector<int64_t>{0, 1, 3, 4, 5, 7, 9, 11});
  CHECK(columns == std::vector<int64_t>{0, 1, 2, 4, 6, 7});
  drt_routine_fractional_sequences(nullptr, pseudo, addressesOf(state, rows, columns).data());
  CHECK(rows == std::vector<int64_t>{0, 2, 4, 6, 7, 9, 10, 11});
  CHECK(columns == std::vector<int64_t>{0, 2, 3, 5, 6, 7});
}

TEST_CASE("fractional pools and their gradients, of windows that overlap") {
  // Two rows in one window, three columns in two.
  std::vector<float> x = {1, 5, 2, 4, 5, 3}, y(2), dy = {1, 10}, dx(6);
  std::vector<int64_t> rows = {0, 2}, columns = {0, 1, 3};
  const int64_t p[] = {DRT_F32, 1, 2, 3, 1, 1, 2, 1};
  drt_routine_fractional_max(nullptr, p, addressesOf(x, rows, columns, y).data());
  CHECK(y == std::vector<float>{5, 5});
  drt_routine_fractional_max_pool_grad(nullptr, p, addressesOf(x, dy, rows, columns, dx).data());
  CHECK(dx == std::vector<float>{0, 11, 0, 0, 0, 0});
  drt_routine_fractional_avg(nullptr, p, addressesOf(x, rows, columns, y).data());
  CHECK(y == std::vector<float>{3.75f, 3.75f});
  drt_routine_fractional_avg_grad(nullptr, p, addressesOf(dy, rows, columns, dx).data());
  CHECK(dx == std::vector<float>{0.25f, 2.75f, 2.5f, 0.25f, 2.75f, 2.5f});
}

TEST_CASE("the best path of each example, blanks and what is repeated left out") {
  // Three steps of two examples, of three classes; the second has two steps alone.
  std::vector<double> x = {9, 1, 1, 1, 1, 9, 9, 1, 1, 1, 5, 2, 1, 8, 1, 9, 1, 1}, sums(2);
  std::vector<int32_t> lengths = {3, 2};
  std::vector<int64_t> places(12), labels(6), sizes(2);
  const int64_t all[] = {DRT_F64, 3, 2, 3, 0, 2}, merged[] = {DRT_F64, 3, 2, 3, 1, 2};
  drt_routine_ctc_greedy_decoder(nullptr, all, addressesOf(x, lengths, places, labels, sizes, sums).data());
  CHECK(labels == std::vector<int64_t>{0, 0, 1, 1, 0, 0});
  CHECK(places == std::vector<int64_t>{0, 0, 0, 1, 0, 2, 1, 0, -1, -1, -1, -1});
  CHECK(sizes == std::vector<int64_t>{2, 3});
  CHECK(sums == std::vector<double>{-26, -14});
  drt_routine_ctc_greedy_decoder(nullptr, merged, addressesOf(x, lengths, places, labels, sizes, sums).data());
  CHECK(labels == std::vector<int64_t>{0, 1, 1, 0, 0, 0});
  CHECK(sizes == std::vector<int64_t>{2, 2});
}

TEST_CASE("distances of sequences; places of -1 are none") {
  std::vector<int64_t> places = {0, 0, 0, 1, 1, 0, -1, -1}, labels = {7, 8, 9, 7};
  std::vector<int64_t> truePlaces = {0, 0, 0, 1, 0, 2, 2, 0}, truth = {7, 6, 8, 5};
  std::vector<float> distances(3);
  const int64_t counted[] = {1, 4, 4, 0, 3}, relative[] = {1, 4, 4, 1, 3};
  drt_routine_edit_distance(nullptr, counted, addressesOf(places, labels, truePlaces, truth, distances).data());
  CHECK(distances == std::vector<float>{1, 1, 1});
  drt_routine_edit_distance(nullptr, relative, addressesOf(places, labels, truePlaces, truth, distances).data());
  CHECK(distances[0] == Approx(1.0 / 3));
  CHECK(std::isinf(distances[1]));
  CHECK(distances[2] == 1);
}

TEST_CASE("rows that do not increase, as near as may be") {
  std::vector<float> x = {3, 1, 2, 1, 3, 4}, y(6);
  std::vector<int32_t> pieces(6);
  const int64_t p[] = {DRT_F32, 2, 3};
  drt_routine_isotonic_regression(nullptr, p, addressesOf(x, y, pieces).data());
  CHECK(y[1] == 1.5f);
  CHECK(y[3] == Approx(8.0 / 3));
  CHECK(pieces == std::vector<int32_t>{0, 1, 1, 0, 0, 0});
}

TEST_CASE("blocks of a sparse tensor, and where their rows came from") {
  std::vector<int64_t> places = {0, 1, 1, 2, 2, 0, -1, -1}, start = {1, 0}, size = {2, 9}, rows(4), block(8), back(4);
  const int64_t p[] = {4, 2, 4};
  drt_routine_sparse_block(nullptr, p, addressesOf(places, start, size, rows, block).data());
  CHECK(rows == std::vector<int64_t>{1, 2, -1, -1});
  CHECK(block == std::vector<int64_t>{0, 2, 1, 0, -1, -1, -1, -1});
  drt_routine_sparse_block_rows(nullptr, p, addressesOf(places, start, block, back).data());
  CHECK(back == std::vector<int64_t>{-1, 0, 1, -1});
}

TEST_CASE("the best boxes of each example, a class at a time") {
  // The second overlaps the first; of the second class it is the better one.
  std::vector<float> boxes = {0, 0, 2, 1, 0, 0, 1.8f, 1, 5, 5, 6, 6}, scores = {0.9f, 0.1f, 0.8f, 0.7f, 0.6f, 0};
  std::vector<float> overlap = {0.5f}, least = {0.05f}, kept(16), keptScores(4), labels(4);
  std::vector<int32_t> count(1);
  const int64_t p[] = {1, 3, 1, 2, 2, 4, 1};
  drt_routine_combined_non_max_suppression(
      nullptr, p, addressesOf(boxes, scores, overlap, least, kept, keptScores, labels, count).data());
  CHECK(count[0] == 3);
  CHECK(keptScores == std::vector<float>{0.9f, 0.7f, 0.6f, 0});
  CHECK(labels == std::vector<float>{0, 1, 0, 0});
  CHECK(kept[2] == 1);
}

TEST_CASE("systems of three diagonals, with rows that are exchanged") {
  // Rows 0 2 ., 3 0 1, . 4 5: the first pivot is 0.
  std::vector<double> diagonals = {2, 1, 99, 0, 0, 5, 99, 3, 4}, b = {4, 6, 23}, x(3);
  const int64_t p[] = {DRT_F64, 1, 3, 1};
  drt_routine_tridiagonal_solve(nullptr, p, addressesOf(diagonals, b, x).data());
  CHECK(x[0] == Approx(1));
  CHECK(x[1] == Approx(2));
  CHECK(x[2] == Approx(3));
}

TEST_CASE("of boxes that overlap the best is selected, and the others lose score where a sigma is given") {
  // The second has half of the first, the third none of it; corners may be in any order, a box without area overlaps
  // none.
  std::vector<float> boxes = {0, 0, 1, 1, 1, 1, 0, 0.5f, 5, 5, 6, 6, 0, 0, 0, 1}, scores = {0.9f, 0.8f, 0.7f, 0.1f};
  std::vector<float> overlap = {0.4f}, least = {0.2f}, hard = {0}, soft = {0.5f}, kept(4);
  std::vector<int32_t> indices(4), count(1);
  const int64_t padded[] = {4, 4, 0, 1}, open[] = {4, 4, 0, 0}, two[] = {4, 2, 0, 0};
  drt_routine_non_max_suppression(nullptr, padded,
                                  addressesOf(boxes, scores, overlap, least, hard, indices, kept, count).data());
  CHECK(indices == std::vector<int32_t>{0, 2, 0, 0});
  CHECK(kept == std::vector<float>{0.9f, 0.7f, 0, 0});
  CHECK(count[0] == 2);
  drt_routine_non_max_suppression(nullptr, open,
                                  addressesOf(boxes, scores, overlap, least, soft, indices, kept, count).data());
  CHECK(indices == std::vector<int32_t>{0, 2, 1, -1});
  CHECK(kept[2] == Approx(0.8 * std::exp(-0.25)));
  overlap = {0.6f};
  drt_routine_non_max_suppression(nullptr, two,
                                  addressesOf(boxes, scores, overlap, least, hard, indices, kept, count).data());
  CHECK(indices[1] == 1);
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

TEST_CASE("the incomplete beta function, and the gradient of gamma numbers, are TensorFlow's") {
  CHECK(drt_special_betainc(2, 3, 0.4) == Approx(0.5248).epsilon(1e-12));
  CHECK(drt_special_betainc(0.5, 40, 0.01) == Approx(0.6286139767460123).epsilon(1e-12));
  CHECK(drt_special_betainc(300, 200, 0.61) == Approx(0.6741626935263219).epsilon(1e-9));
  CHECK(drt_special_betainc(2, 3, 0) == 0);
  CHECK(drt_special_betainc(2, 3, 1) == 1);
  CHECK(std::isnan(drt_special_betainc(0, 3, 0.5)));
  CHECK(std::isnan(drt_special_betainc(2, 3, 1.5)));
  CHECK(drt_special_random_gamma_grad(2, 1.5) == Approx(0.9366390678772176).epsilon(1e-9));
  CHECK(drt_special_random_gamma_grad(0.3, 1e-4) == Approx(0.0030139680540033358).epsilon(1e-9));
  CHECK(drt_special_random_gamma_grad(50, 70) == Approx(1.181572562765406).epsilon(1e-9));
  CHECK(drt_special_random_gamma_grad(3, 200) == Approx(4.424582387177954).epsilon(1e-9));
  CHECK(drt_special_random_gamma_grad(2, 0) == 0);
  CHECK(std::isnan(drt_special_random_gamma_grad(0, 1)));
  CHECK(std::isnan(drt_special_random_gamma_grad(2, -1)));
}

TEST_CASE("binomial numbers have their means and variances") {
  for (const auto &[tries, p] : {std::pair{12.0, 0.2}, {12.0, 0.9}, {100.0, 0.3}, {1000.0, 0.75}}) {
    double sum = 0, squares = 0;
    constexpr int count = 40000;
    for (int i = 0; i < count; ++i) {
      const double drawn = drt_special_draw_binomial(tries, p, (i + 0.5) / count);
      REQUIRE((drawn >= 0 && drawn <= tries && drawn == std::floor(drawn)));
      sum += drawn;
      squares += drawn * drawn;
    }
    CHECK(sum / count == Approx(tries * p).epsilon(0.01));
    CHECK(squares / count - sum / count * sum / count == Approx(tries * p * (1 - p)).epsilon(0.06));
  }
  CHECK(drt_special_draw_binomial(5, 0, 0.5) == 0);
  CHECK(drt_special_draw_binomial(5, 1, 0.5) == 5);
  CHECK(std::isnan(drt_special_draw_binomial(5, 1.5, 0.5)));
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

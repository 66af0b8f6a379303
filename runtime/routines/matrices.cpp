//===- matrices.cpp - drt.h's routines of linear algebra --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Plain algorithms for the small matrices of whitening, Gaussian processes and
// orthogonal initializers (Golub and Van Loan, Matrix Computations, chapters 3 to
// 5). They compute in float64 whatever the elements are.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace drt;

namespace {

/// Row-major.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> elements;

  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), elements(rows * columns) {}
  double &at(int64_t i, int64_t j) { return elements[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return elements[i * columns + j]; }
};

template <typename T> void load(Matrix &matrix, const void *from, int64_t number) {
  std::copy_n(static_cast<const T *>(from) + number * matrix.rows * matrix.columns, matrix.rows * matrix.columns,
              matrix.elements.begin());
}
void load(Matrix &matrix, int64_t dtype, const void *from, int64_t number) {
  dtype == DRT_F64 ? load<double>(matrix, from, number) : load<float>(matrix, from, number);
}
void store(const Matrix &matrix, int64_t dtype, void *to, int64_t number) {
  const int64_t count = matrix.rows * matrix.columns;
  if (dtype == DRT_F64)
    std::copy_n(matrix.elements.begin(), count, static_cast<double *>(to) + number * count);
  else
    std::transform(matrix.elements.begin(), matrix.elements.end(), static_cast<float *>(to) + number * count,
                   [](double x) { return static_cast<float>(x); });
}
void storeNumber(double x, int64_t dtype, void *to, int64_t number) {
  if (dtype == DRT_F64)
    static_cast<double *>(to)[number] = x;
  else
    static_cast<float *>(to)[number] = static_cast<float>(x);
}

Matrix transpose(const Matrix &a) {
  Matrix t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j)
      t.at(j, i) = a.at(i, j);
  return t;
}

/// p a = l u with partial pivoting, in place; `sign` is p's, `rows` says where p's rows come from, `pivots` with which
/// row each step exchanged its own. Need not be square.
struct Factors {
  Matrix lu;
  std::vector<int64_t> rows, pivots;
  double sign = 1;
  bool isSingular = false;

  explicit Factors(Matrix a) : lu(std::move(a)), rows(lu.rows), pivots(std::min(lu.rows, lu.columns)) {
    const int64_t m = lu.rows, n = lu.columns;
    std::iota(rows.begin(), rows.end(), 0);
    for (int64_t k = 0; k < static_cast<int64_t>(pivots.size()); ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < m; ++i)
        if (std::abs(lu.at(i, k)) > std::abs(lu.at(pivot, k)))
          pivot = i;
      pivots[k] = pivot;
      if (lu.at(pivot, k) == 0) {
        isSingular = true;
        continue;
      }
      if (pivot != k) {
        std::swap_ranges(&lu.at(k, 0), &lu.at(k, 0) + n, &lu.at(pivot, 0));
        std::swap(rows[k], rows[pivot]);
        sign = -sign;
      }
      for (int64_t i = k + 1; i < m; ++i) {
        const double factor = lu.at(i, k) /= lu.at(k, k);
        for (int64_t j = k + 1; j < n; ++j)
          lu.at(i, j) -= factor * lu.at(k, j);
      }
    }
  }
  Matrix solve(const Matrix &b) const {
    const int64_t n = lu.rows, m = b.columns;
    Matrix x(n, m);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < m; ++c)
        x.at(i, c) = b.at(rows[i], c);
      for (int64_t j = 0; j < i; ++j)
        for (int64_t c = 0; c < m; ++c)
          x.at(i, c) -= lu.at(i, j) * x.at(j, c);
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      for (int64_t j = i + 1; j < n; ++j)
        for (int64_t c = 0; c < m; ++c)
          x.at(i, c) -= lu.at(i, j) * x.at(j, c);
      for (int64_t c = 0; c < m; ++c)
        x.at(i, c) /= lu.at(i, i);
    }
    return x;
  }
};

/// Solves for `b`, in place, with a matrix of three diagonals (a row each: above, on, below), with partial pivoting,
/// which fills in a fourth, above. False where the matrix has no inverse.
bool solveTridiagonal(const Matrix &diagonals, Matrix &b) {
  const int64_t n = b.rows, m = b.columns;
  // Of each row what is on the diagonal and twice right of it.
  std::vector<double> own(n), next(n, 0.0), afterNext(n, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    own[i] = diagonals.at(1, i);
    if (i + 1 < n)
      next[i] = diagonals.at(0, i);
  }
  for (int64_t i = 0; i + 1 < n; ++i) {
    double below = diagonals.at(2, i + 1);
    if (std::abs(below) > std::abs(own[i])) {
      std::swap(own[i], below);
      std::swap(next[i], own[i + 1]);
      std::swap(afterNext[i], next[i + 1]);
      std::swap_ranges(&b.at(i, 0), &b.at(i, 0) + m, &b.at(i + 1, 0));
    }
    if (own[i] == 0)
      return false;
    const double factor = below / own[i];
    own[i + 1] -= factor * next[i];
    next[i + 1] -= factor * afterNext[i];
    for (int64_t c = 0; c < m; ++c)
      b.at(i + 1, c) -= factor * b.at(i, c);
  }
  if (own[n - 1] == 0)
    return false;
  for (int64_t i = n - 1; i >= 0; --i)
    for (int64_t c = 0; c < m; ++c) {
      double rest = b.at(i, c);
      if (i + 1 < n)
        rest -= next[i] * b.at(i + 1, c);
      if (i + 2 < n)
        rest -= afterNext[i] * b.at(i + 2, c);
      b.at(i, c) = rest / own[i];
    }
  return true;
}

/// False where `a` is not positive definite.
bool factorCholesky(const Matrix &a, Matrix &l) {
  for (int64_t j = 0; j < a.rows; ++j)
    for (int64_t i = j; i < a.rows; ++i) {
      double rest = a.at(i, j);
      for (int64_t k = 0; k < j; ++k)
        rest -= l.at(i, k) * l.at(j, k);
      if (i == j && !(rest > 0))
        return false;
      l.at(i, j) = i == j ? std::sqrt(rest) : rest / l.at(j, j);
    }
  return true;
}

/// a - scale v (v^T a), of the columns from `column` on; v begins at row `row`. Row after row, as they lie in memory.
void reflect(Matrix &a, const std::vector<double> &v, double scale, int64_t row, int64_t column) {
  std::vector<double> dots(a.columns, 0.0);
  for (int64_t i = row; i < a.rows; ++i)
    for (int64_t j = column; j < a.columns; ++j)
      dots[j] += v[i] * a.at(i, j);
  for (int64_t i = row; i < a.rows; ++i)
    for (int64_t j = column; j < a.columns; ++j)
      a.at(i, j) -= scale * dots[j] * v[i];
}

/// By reflections, as LAPACK chooses signs: r, and below the diagonal of column k what reflection k has behind its one.
/// The reflections' scales.
std::vector<double> factorHouseholder(Matrix &a) {
  const int64_t m = a.rows, steps = std::min(m, a.columns);
  std::vector<double> scales(steps, 0.0), v(m);
  for (int64_t k = 0; k < steps; ++k) {
    double norm = 0;
    for (int64_t i = k + 1; i < m; ++i)
      norm += a.at(i, k) * a.at(i, k);
    if (norm == 0)
      continue;
    const double alpha = a.at(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + norm), alpha);
    v[k] = 1;
    for (int64_t i = k + 1; i < m; ++i)
      v[i] = a.at(i, k) / (alpha - beta);
    scales[k] = (beta - alpha) / beta;
    reflect(a, v, scales[k], k, k);
    for (int64_t i = k + 1; i < m; ++i)
      a.at(i, k) = v[i];
  }
  return scales;
}

/// The first columns of the product of the reflections, as many as q has.
void multiplyReflections(const Matrix &factors, const std::vector<double> &scales, Matrix &q) {
  for (int64_t i = 0; i < q.rows; ++i)
    for (int64_t j = 0; j < q.columns; ++j)
      q.at(i, j) = i == j;
  std::vector<double> v(q.rows);
  for (int64_t k = static_cast<int64_t>(scales.size()) - 1; k >= 0; --k) {
    v[k] = 1;
    for (int64_t i = k + 1; i < q.rows; ++i)
      v[i] = factors.at(i, k);
    reflect(q, v, scales[k], k, 0);
  }
}

// Whether all went well; apart, so that nothing is left to destroy when the replica escapes.
bool cholesky(const int64_t *p, void *const *tensors) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(p[2], p[2]), l(p[2], p[2]);
    load(a, p[0], tensors[0], number);
    if (!factorCholesky(a, l))
      return false;
    store(l, p[0], tensors[1], number);
  }
  return true;
}

bool solve(int64_t dtype, int64_t count, int64_t n, int64_t columns, bool adjoint, const void *matrices,
           const void *sides, void *results) {
  for (int64_t number = 0; number < count; ++number) {
    Matrix a(n, n), b(n, columns);
    load(a, dtype, matrices, number);
    if (sides)
      load(b, dtype, sides, number);
    else
      for (int64_t i = 0; i < n; ++i)
        b.at(i, i) = 1;
    const Factors factors(adjoint ? transpose(a) : std::move(a));
    if (factors.isSingular)
      return false;
    store(factors.solve(b), dtype, results, number);
  }
  return true;
}

bool solveTriangular(const int64_t *p, void *const *tensors) {
  const int64_t n = p[2], columns = p[3];
  const bool adjoint = p[5] != 0, lower = (p[4] != 0) != adjoint;
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(n, n), x(n, columns);
    load(a, p[0], tensors[0], number);
    load(x, p[0], tensors[1], number);
    if (adjoint)
      a = transpose(a);
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = lower ? step : n - 1 - step;
      if (a.at(i, i) == 0)
        return false;
      for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); ++j)
        for (int64_t c = 0; c < columns; ++c)
          x.at(i, c) -= a.at(i, j) * x.at(j, c);
      for (int64_t c = 0; c < columns; ++c)
        x.at(i, c) /= a.at(i, i);
    }
    store(x, p[0], tensors[2], number);
  }
  return true;
}

bool solveTridiagonals(const int64_t *p, void *const *tensors) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix diagonals(3, p[2]), x(p[2], p[3]);
    load(diagonals, p[0], tensors[0], number);
    load(x, p[0], tensors[1], number);
    if (!solveTridiagonal(diagonals, x))
      return false;
    store(x, p[0], tensors[2], number);
  }
  return true;
}

void storeIndices(const std::vector<int64_t> &indices, int64_t first, int64_t dtype, void *to, int64_t number) {
  for (size_t i = 0; i < indices.size(); ++i)
    if (dtype == DRT_I64)
      static_cast<int64_t *>(to)[number * indices.size() + i] = first + indices[i];
    else
      static_cast<int32_t *>(to)[number * indices.size() + i] = static_cast<int32_t>(first + indices[i]);
}

void factorLu(const int64_t *p, void *const *tensors, bool asPivots) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(p[2], p[3]);
    load(a, p[0], tensors[0], number);
    const Factors factors(std::move(a));
    store(factors.lu, p[0], tensors[1], number);
    storeIndices(asPivots ? factors.pivots : factors.rows, asPivots, p[4], tensors[2], number);
  }
}

template <typename Result> void forEachDeterminant(const int64_t *p, const void *matrices, Result result) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(p[2], p[2]);
    load(a, p[0], matrices, number);
    const Factors factors(std::move(a));
    double sign = factors.sign, log = 0;
    for (int64_t i = 0; i < p[2]; ++i) {
      const double pivot = factors.lu.at(i, i);
      sign *= pivot == 0 ? 0 : std::copysign(1.0, pivot);
      log += std::log(std::abs(pivot));
    }
    result(number, sign, factors.isSingular ? -INFINITY : log);
  }
}

} // namespace

void drt_routine_cholesky(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!cholesky(p, tensors))
    drt_fail(replica, "the Cholesky decomposition was not successful: the input is not positive definite");
}

void drt_routine_matrix_inverse(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!solve(p[0], p[1], p[2], p[2], p[3] != 0, tensors[0], nullptr, tensors[1]))
    drt_fail(replica, "a matrix that is inverted has no inverse");
}

void drt_routine_matrix_solve(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!solve(p[0], p[1], p[2], p[3], p[4] != 0, tensors[0], tensors[1], tensors[2]))
    drt_fail(replica, "a matrix that is solved with has no inverse");
}

void drt_routine_matrix_triangular_solve(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!solveTriangular(p, tensors))
    drt_fail(replica, "a triangular matrix that is solved with has no inverse");
}

void drt_routine_tridiagonal_solve(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!solveTridiagonals(p, tensors))
    drt_fail(replica, "a tridiagonal matrix that is solved with has no inverse");
}

void drt_routine_matrix_determinant(drt_replica *, const int64_t *p, void *const *tensors) {
  forEachDeterminant(p, tensors[0], [&](int64_t number, double sign, double log) {
    storeNumber(sign * std::exp(log), p[0], tensors[1], number);
  });
}

void drt_routine_log_matrix_determinant(drt_replica *, const int64_t *p, void *const *tensors) {
  forEachDeterminant(p, tensors[0], [&](int64_t number, double sign, double log) {
    storeNumber(sign, p[0], tensors[1], number);
    storeNumber(log, p[0], tensors[2], number);
  });
}

void drt_routine_qr(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t m = p[2], n = p[3], k = p[4] ? m : std::min(m, n);
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(m, n), q(m, k), r(k, n);
    load(a, p[0], tensors[0], number);
    multiplyReflections(a, factorHouseholder(a), q);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = i; j < n; ++j)
        r.at(i, j) = a.at(i, j);
    store(q, p[0], tensors[1], number);
    store(r, p[0], tensors[2], number);
  }
}

void drt_routine_householder_factors(drt_replica *, const int64_t *p, void *const *tensors) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix a(p[2], p[3]), scales(1, std::min(p[2], p[3]));
    load(a, p[0], tensors[0], number);
    scales.elements = factorHouseholder(a);
    store(a, p[0], tensors[1], number);
    store(scales, p[0], tensors[2], number);
  }
}

void drt_routine_householder_product(drt_replica *, const int64_t *p, void *const *tensors) {
  for (int64_t number = 0; number < p[1]; ++number) {
    Matrix factors(p[2], p[3]), scales(1, p[4]), q(p[2], p[3]);
    load(factors, p[0], tensors[0], number);
    load(scales, p[0], tensors[1], number);
    multiplyReflections(factors, scales.elements, q);
    store(q, p[0], tensors[2], number);
  }
}

void drt_routine_lu(drt_replica *, const int64_t *p, void *const *tensors) { factorLu(p, tensors, false); }

void drt_routine_lu_pivots(drt_replica *, const int64_t *p, void *const *tensors) { factorLu(p, tensors, true); }

//===- spectral.cpp - Eigenvalues, singular values, and what follows from them ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// By Eigen, whose algorithms TensorFlow's kernels are as well: where vectors have no
// sign of their own, they have TensorFlow's. That is why symmetric matrices are
// decomposed in the type of their elements; singular vectors' signs are the same in
// float64.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <unsupported/Eigen/MatrixFunctions>

#include <limits>

using namespace drt;

namespace {

template <typename T> using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// Column-major, as TensorFlow's kernels copy them.
template <typename T> using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T> Columns<T> load(const void *from, int64_t number, int64_t rows, int64_t columns) {
  return Eigen::Map<const Rows<T>>(static_cast<const T *>(from) + number * rows * columns, rows, columns);
}
template <typename T, typename Matrix> void store(const Matrix &matrix, void *to, int64_t number) {
  Eigen::Map<Rows<T>>(static_cast<T *>(to) + number * matrix.size(), matrix.rows(), matrix.cols()) =
      matrix.template cast<T>();
}

template <typename T> void decomposeSelfAdjoint(const int64_t *p, void *const *tensors) {
  const int64_t n = p[2];
  const bool hasVectors = p[3] != 0;
  for (int64_t number = 0; number < p[1]; ++number) {
    const Columns<T> a = load<T>(tensors[0], number, n, n);
    Columns<T> values = Columns<T>::Constant(n, 1, static_cast<T>(kNan)), vectors;
    if (hasVectors)
      vectors = Columns<T>::Constant(n, n, static_cast<T>(kNan));
    if (Columns<T>(a.template triangularView<Eigen::Lower>()).allFinite()) {
      const Eigen::SelfAdjointEigenSolver<Columns<T>> solver(a, hasVectors ? Eigen::ComputeEigenvectors
                                                                           : Eigen::EigenvaluesOnly);
      if (solver.info() == Eigen::Success) {
        values = solver.eigenvalues();
        if (hasVectors)
          vectors = solver.eigenvectors();
      }
    }
    store<T>(values, tensors[1], number);
    if (hasVectors)
      store<T>(vectors, tensors[2], number);
  }
}

template <typename T> void decomposeSingular(const int64_t *p, void *const *tensors) {
  using Matrix = Columns<double>;
  const int64_t m = p[2], n = p[3], k = std::min(m, n);
  const bool hasVectors = p[4] != 0, isFull = p[5] != 0;
  const int64_t us = isFull ? m : k, vs = isFull ? n : k;
  const unsigned options = !hasVectors ? 0
                           : isFull    ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                       : Eigen::ComputeThinU | Eigen::ComputeThinV;
  for (int64_t number = 0; number < p[1]; ++number) {
    const Matrix a = load<T>(tensors[0], number, m, n).template cast<double>();
    Matrix s = Matrix::Constant(k, 1, kNan), u, v;
    if (hasVectors) {
      u = Matrix::Constant(m, us, kNan);
      v = Matrix::Constant(n, vs, kNan);
    }
    if (a.allFinite()) {
      const Eigen::BDCSVD<Matrix> solver(a, options);
      if (solver.info() == Eigen::Success) {
        s = solver.singularValues();
        if (hasVectors) {
          u = solver.matrixU();
          v = solver.matrixV();
        }
      }
    }
    store<T>(s, tensors[1], number);
    if (hasVectors) {
      store<T>(u, tensors[2], number);
      store<T>(v, tensors[3], number);
    }
  }
}

template <typename T> void takeRoot(const int64_t *p, void *const *tensors) {
  for (int64_t number = 0; number < p[1]; ++number) {
    const Columns<double> a = load<T>(tensors[0], number, p[2], p[2]).template cast<double>();
    Columns<double> root = Columns<double>::Constant(p[2], p[2], kNan);
    if (a.allFinite())
      root = a.sqrt();
    store<T>(root, tensors[1], number);
  }
}

/// Whether there was a factor.
template <typename T> bool solveLeastSquares(const int64_t *p, void *const *tensors) {
  using Matrix = Columns<double>;
  const int64_t m = p[2], n = p[3];
  const double regularizer = *static_cast<const double *>(tensors[2]);
  for (int64_t number = 0; number < p[1]; ++number) {
    const Matrix a = load<T>(tensors[0], number, m, n).template cast<double>(),
                 b = load<T>(tensors[1], number, m, p[4]).template cast<double>();
    Matrix x;
    if (!p[5]) {
      x = Eigen::CompleteOrthogonalDecomposition<Matrix>(a).solve(b);
    } else {
      // Of the smaller of both products.
      const bool isTall = m >= n;
      Matrix gramian = isTall ? Matrix(a.transpose() * a) : Matrix(a * a.transpose());
      gramian.diagonal().array() += regularizer;
      const Eigen::LLT<Matrix> factor(gramian);
      if (factor.info() != Eigen::Success)
        return false;
      x = isTall ? Matrix(factor.solve(a.transpose() * b)) : Matrix(a.transpose() * factor.solve(b));
    }
    store<T>(x, tensors[3], number);
  }
  return true;
}

} // namespace

void drt_routine_self_adjoint_eig(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F64 ? decomposeSelfAdjoint<double>(p, tensors) : decomposeSelfAdjoint<float>(p, tensors);
}

void drt_routine_svd(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F64 ? decomposeSingular<double>(p, tensors) : decomposeSingular<float>(p, tensors);
}

void drt_routine_matrix_square_root(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F64 ? takeRoot<double>(p, tensors) : takeRoot<float>(p, tensors);
}

void drt_routine_matrix_solve_ls(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!(p[0] == DRT_F64 ? solveLeastSquares<double>(p, tensors) : solveLeastSquares<float>(p, tensors)))
    drt_fail(replica, "a problem of least squares has no Cholesky factor: its matrix has not full rank");
}

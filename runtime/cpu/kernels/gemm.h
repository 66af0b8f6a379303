//===- gemm.h - Matrix products of our own -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// For the types that oneDNN has no product for, and for products so small that
// the call would cost more than the work.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_GEMM_H
#define DRT_CPU_KERNELS_GEMM_H

#include "drt/drt.h"

#include <cstdint>

namespace drt {

/// c[m,n] = op(a)[m,k] * op(b)[k,n], or c += with `accumulate`; row-major.
/// A leading dimension is the distance between the rows as they lie in memory,
/// that is of a, not op(a). Without `accumulate` c is not read, and k = 0 gives 0.
struct GemmShape {
  int64_t m, n, k;
  bool transposeA, transposeB;
  int64_t lda, ldb, ldc;
  bool accumulate;
};

/// Of some rows and columns of a call site's product, whose matrices lie dense.
inline GemmShape shapeOf(const drt_matmul_desc &desc, int64_t rows, int64_t columns) {
  const bool transposeA = desc.transpose_a != 0, transposeB = desc.transpose_b != 0;
  return {rows,   columns, desc.k, transposeA, transposeB, transposeA ? desc.m : desc.k, transposeB ? desc.k : desc.n,
          desc.n, false};
}

template <class T> void gemm(const GemmShape &shape, const T *a, const T *b, T *c);
extern template void gemm(const GemmShape &, const float *, const float *, float *);
extern template void gemm(const GemmShape &, const double *, const double *, double *);
extern template void gemm(const GemmShape &, const int32_t *, const int32_t *, int32_t *);
extern template void gemm(const GemmShape &, const int64_t *, const int64_t *, int64_t *);

/// c[rows,n] = epilogue(c + bias), in place. `bias` has n elements or is null.
template <class T> void applyEpilogue(int32_t epilogue, const T *bias, int64_t rows, int64_t n, T *c);
extern template void applyEpilogue(int32_t, const float *, int64_t, int64_t, float *);
extern template void applyEpilogue(int32_t, const double *, int64_t, int64_t, double *);
extern template void applyEpilogue(int32_t, const int32_t *, int64_t, int64_t, int32_t *);
extern template void applyEpilogue(int32_t, const int64_t *, int64_t, int64_t, int64_t *);

} // namespace drt

#endif // DRT_CPU_KERNELS_GEMM_H

//===- gemm.cpp - Matrix products of our own -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/gemm.h"

#include "core/clones.h"
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

using namespace drt;

namespace {
// Vectors of the widest registers; narrower machines take several for one.
template <class T> struct Wide {
  typedef T Vector __attribute__((vector_size(64)));
};
template <class T> constexpr int laneCount = 64 / sizeof(T);

// A tile of c is tileRows x tileColumns<T>, kept in registers while k goes by.
constexpr int tileRows = 4, tileVectors = 2;
template <class T> constexpr int tileColumns = tileVectors * laneCount<T>;
// Rows of b that are packed at a time: the panel stays in the first-level cache.
constexpr int64_t panelRows = 128;

// One tile of c. Always inlined, so that it is compiled for the machine of the
// clone around it.
template <int rows, class T>
[[gnu::always_inline]] inline void multiplyTile(int64_t depth, const T *a, int64_t rowStride, int64_t stepStride,
                                                const T *panel, bool add, int64_t width, T *c, int64_t ldc) {
  constexpr int columns = tileColumns<T>;
  using Vector = typename Wide<T>::Vector;
  Vector acc[rows][tileVectors] = {};
  for (int64_t step = 0; step < depth; ++step) {
    const Vector *line = reinterpret_cast<const Vector *>(panel + step * columns);
    for (int row = 0; row < rows; ++row) {
      T factor = a[row * rowStride + step * stepStride];
      for (int vector = 0; vector < tileVectors; ++vector)
        acc[row][vector] += factor * line[vector];
    }
  }
  for (int row = 0; row < rows; ++row) {
    T *to = c + row * ldc;
    for (int64_t column = 0; column < width; ++column) {
      T sum = acc[row][column / laneCount<T>][column % laneCount<T>];
      to[column] = add ? to[column] + sum : sum;
    }
  }
}

template <class T> [[gnu::always_inline]] inline void multiplyTiled(const GemmShape &s, const T *a, const T *b, T *c) {
  constexpr int columns = tileColumns<T>;
  int64_t rowStride = s.transposeA ? 1 : s.lda, stepStride = s.transposeA ? s.lda : 1;
  alignas(64) T panel[panelRows * columns];
  for (int64_t left = 0; left < s.n; left += columns) {
    int64_t width = std::min<int64_t>(columns, s.n - left);
    for (int64_t begin = 0; begin < s.k; begin += panelRows) {
      int64_t depth = std::min(panelRows, s.k - begin);
      for (int64_t step = 0; step < depth; ++step)
        for (int64_t column = 0; column < columns; ++column)
          panel[step * columns + column] = column >= width ? T(0)
                                           : s.transposeB  ? b[(left + column) * s.ldb + begin + step]
                                                           : b[(begin + step) * s.ldb + left + column];
      bool add = s.accumulate || begin > 0;
      const T *from = a + begin * stepStride;
      T *to = c + left;
      int64_t row = 0;
      for (; row + tileRows <= s.m; row += tileRows)
        multiplyTile<tileRows>(depth, from + row * rowStride, rowStride, stepStride, panel, add, width,
                               to + row * s.ldc, s.ldc);
      for (; row < s.m; ++row)
        multiplyTile<1>(depth, from + row * rowStride, rowStride, stepStride, panel, add, width, to + row * s.ldc,
                        s.ldc);
    }
  }
}

// Straight loops, without packing: for products of few columns or few operations.
template <class T>
[[gnu::always_inline]] inline void multiplyPlain(const GemmShape &s, const T *a, const T *b, T *__restrict c) {
  int64_t rowStride = s.transposeA ? 1 : s.lda, stepStride = s.transposeA ? s.lda : 1;
  int64_t ldb = s.n == 1 && s.transposeB ? 1 : s.ldb;
  if (s.transposeB && s.n != 1) {
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) {
        T sum = 0;
        for (int64_t step = 0; step < s.k; ++step)
          sum += a[row * rowStride + step * stepStride] * b[column * s.ldb + step];
        T &to = c[row * s.ldc + column];
        to = s.accumulate ? to + sum : sum;
      }
    return;
  }
  for (int64_t row = 0; row < s.m; ++row)
    if (!s.accumulate)
      std::fill_n(c + row * s.ldc, s.n, T(0));
  if (s.n == 1 && s.transposeA && s.ldc == 1) { // columns of a, one after the other
    for (int64_t step = 0; step < s.k; ++step) {
      T factor = b[step * ldb];
      for (int64_t row = 0; row < s.m; ++row)
        c[row] += a[step * s.lda + row] * factor;
    }
    return;
  }
  if (s.n == 1) { // rows of a with b: sums side by side, since one would wait for itself
    constexpr int lanes = laneCount<T>;
    for (int64_t row = 0; row < s.m; ++row) {
      T sums[lanes] = {}, sum = 0;
      int64_t step = 0;
      if (stepStride == 1 && ldb == 1)
        for (; step + lanes <= s.k; step += lanes)
          for (int lane = 0; lane < lanes; ++lane)
            sums[lane] += a[row * rowStride + step + lane] * b[step + lane];
      for (int lane = 0; lane < lanes; ++lane)
        sum += sums[lane];
      for (; step < s.k; ++step)
        sum += a[row * rowStride + step * stepStride] * b[step * ldb];
      c[row * s.ldc] += sum;
    }
    return;
  }
  for (int64_t row = 0; row < s.m; ++row)
    for (int64_t step = 0; step < s.k; ++step) {
      T factor = a[row * rowStride + step * stepStride];
      for (int64_t column = 0; column < s.n; ++column)
        c[row * s.ldc + column] += factor * b[step * ldb + column];
    }
}

// Packing pays when the panel is used often enough and has enough columns.
bool worthPacking(const GemmShape &s) { return s.k > 0 && s.m >= tileRows && s.n >= 6 && s.m * s.n * s.k > 512; }

// Clones cannot be templates, so each type has its own function.
DRT_WIDE_CLONES void multiply(bool tiled, const GemmShape &s, const float *a, const float *b, float *c) {
  tiled ? multiplyTiled(s, a, b, c) : multiplyPlain(s, a, b, c);
}
DRT_WIDE_CLONES void multiply(bool tiled, const GemmShape &s, const double *a, const double *b, double *c) {
  tiled ? multiplyTiled(s, a, b, c) : multiplyPlain(s, a, b, c);
}
// Integers wrap around, as TensorFlow's do, so they are multiplied unsigned.
DRT_WIDE_CLONES void multiply(bool tiled, const GemmShape &s, const uint32_t *a, const uint32_t *b, uint32_t *c) {
  tiled ? multiplyTiled(s, a, b, c) : multiplyPlain(s, a, b, c);
}
DRT_WIDE_CLONES void multiply(bool tiled, const GemmShape &s, const uint64_t *a, const uint64_t *b, uint64_t *c) {
  tiled ? multiplyTiled(s, a, b, c) : multiplyPlain(s, a, b, c);
}

template <class T> struct Arithmetic {
  using type = T;
};
template <> struct Arithmetic<int32_t> {
  using type = uint32_t;
};
template <> struct Arithmetic<int64_t> {
  using type = uint64_t;
};
} // namespace

template <class T> void drt::gemm(const GemmShape &shape, const T *a, const T *b, T *c) {
  using U = typename Arithmetic<T>::type;
  const U *ua = reinterpret_cast<const U *>(a), *ub = reinterpret_cast<const U *>(b);
  U *uc = reinterpret_cast<U *>(c);
  multiply(worthPacking(shape), shape, ua, ub, uc);
}

template <class T> void drt::applyEpilogue(int32_t epilogue, const T *bias, int64_t rows, int64_t n, T *c) {
  if (!bias && epilogue == DRT_EPILOGUE_NONE)
    return;
  for (int64_t row = 0; row < rows; ++row, c += n) {
    if (bias)
      for (int64_t column = 0; column < n; ++column)
        c[column] += bias[column];
    if (epilogue == DRT_EPILOGUE_RELU)
      for (int64_t column = 0; column < n; ++column)
        c[column] = c[column] < T(0) ? T(0) : c[column];
    if constexpr (std::is_floating_point_v<T>) {
      if (epilogue == DRT_EPILOGUE_TANH)
        for (int64_t column = 0; column < n; ++column)
          c[column] = std::tanh(c[column]);
      if (epilogue == DRT_EPILOGUE_SIGMOID)
        for (int64_t column = 0; column < n; ++column)
          c[column] = T(1) / (T(1) + std::exp(-c[column]));
    }
  }
}

template void drt::gemm(const GemmShape &, const float *, const float *, float *);
template void drt::gemm(const GemmShape &, const double *, const double *, double *);
template void drt::gemm(const GemmShape &, const int32_t *, const int32_t *, int32_t *);
template void drt::gemm(const GemmShape &, const int64_t *, const int64_t *, int64_t *);
template void drt::applyEpilogue(int32_t, const float *, int64_t, int64_t, float *);
template void drt::applyEpilogue(int32_t, const double *, int64_t, int64_t, double *);
template void drt::applyEpilogue(int32_t, const int32_t *, int64_t, int64_t, int32_t *);
template void drt::applyEpilogue(int32_t, const int64_t *, int64_t, int64_t, int64_t *);

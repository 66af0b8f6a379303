//===- sgemm.cpp - oneDNN's sgemm, fed so that it stays fast -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/library_matmul.h"

#include <algorithm>
#include <vector>

using namespace drt;

namespace {
constexpr int64_t panelRows = 128;
constexpr int64_t collidingElements = 512, smallestColliding = 1024;
} // namespace

bool drt::cutsAlongK(const GemmShape &s) {
  return !s.transposeB && s.k > panelRows && s.n > 1 && s.ldb >= smallestColliding && s.ldb % collidingElements == 0;
}

// c += scale * product, where own loops have no scale.
static void ownSgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c) {
  if (scale == 1.0f)
    return gemm(s, a, b, c);
  GemmShape dense = s;
  dense.ldc = s.n;
  dense.accumulate = false;
  std::vector<float> product(static_cast<size_t>(s.m * s.n));
  gemm(dense, a, b, product.data());
  for (int64_t row = 0; row < s.m; ++row)
    for (int64_t column = 0; column < s.n; ++column) {
      float &to = c[row * s.ldc + column];
      to = (s.accumulate ? to : 0.0f) + scale * product[static_cast<size_t>(row * s.n + column)];
    }
}

void drt::sgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c) {
  if (!librarySgemm)
    return ownSgemm(s, scale, a, b, c);
  int64_t step = cutsAlongK(s) ? panelRows : std::max<int64_t>(1, s.k);
  for (int64_t begin = 0; begin < s.k; begin += step) {
    const float *from = a + (s.transposeA ? begin * s.lda : begin);
    const float *with = b + (s.transposeB ? begin : begin * s.ldb);
    librarySgemm(s, std::min(step, s.k - begin), scale, from, with, s.accumulate || begin > 0 ? 1.0f : 0.0f, c);
  }
}

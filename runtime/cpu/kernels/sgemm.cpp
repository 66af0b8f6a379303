//===- sgemm.cpp - oneDNN's sgemm, fed so that it stays fast -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/sgemm.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

using namespace drt;

namespace {
constexpr int64_t panelRows = 128;
constexpr int64_t collidingElements = 512, smallestColliding = 1024;
} // namespace

bool drt::cutsAlongK(const GemmShape &s) {
  return !s.transposeB && s.k > panelRows && s.n > 1 && s.ldb >= smallestColliding && s.ldb % collidingElements == 0;
}

void drt::sgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c) {
  int64_t step = cutsAlongK(s) ? panelRows : std::max<int64_t>(1, s.k);
  for (int64_t begin = 0; begin < s.k; begin += step) {
    int64_t depth = std::min(step, s.k - begin);
    const float *from = a + (s.transposeA ? begin * s.lda : begin);
    const float *with = b + (s.transposeB ? begin : begin * s.ldb);
    float keep = s.accumulate || begin > 0 ? 1.0f : 0.0f;
    dnnl::error::wrap_c_api(dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n, depth, scale, from,
                                       s.lda, with, s.ldb, keep, c, s.ldc),
                            "oneDNN could not multiply matrices");
  }
}

//===- sgemm.h - oneDNN's sgemm, fed so that it stays fast, or own loops -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SGEMM_H
#define DRT_CPU_KERNELS_SGEMM_H

#include "cpu/kernels/gemm.h"

namespace drt {

/// Whether `sgemm` cuts this product along k. The library packs b, and where b's rows
/// are a multiple of half a page apart, the rows of a long panel meet in the same few
/// cache sets and drive each other out. Panels of 128 rows do not. One thread,
/// GFLOP/s, whole and cut, on the machine of matmul.cpp:
///
///      m     n     k        whole   cut
///     64  2048   784          115   148
///     64  2048  2048          112   146
///     32  2048  2048          112   150
///     64  1024  1024          129   151
///    128  2048  2048          140   143
///     64  2000  2048          152   150   (rows that do not collide)
bool cutsAlongK(const GemmShape &shape);

/// c = scale * op(a) * op(b), or c += ..., like gemm. Throws dnnl::error.
void sgemm(const GemmShape &shape, float scale, const float *a, const float *b, float *c);

} // namespace drt

#endif // DRT_CPU_KERNELS_SGEMM_H

//===- sgemm.h - oneDNN's sgemm, fed so that it stays fast, or own loops -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SGEMM_H
#define DRT_CPU_KERNELS_SGEMM_H

#include "cpu/kernels/gemm.h"

namespace drt {
class PackedOperand;

/// How a product is given to the library, whose loops wait for memory where b's rows lie a multiple of a large power of
/// two apart: the rows of a panel meet in the same few cache sets and drive each other out.
enum class Feed {
  Whole,
  /// With 512 bits the library packs b, which panels of 128 rows survive. One thread, GFLOP/s, whole and cut, on the
  /// machine of matmul.cpp:
  ///
  ///      m     n     k        whole   cut
  ///     64  2048   784          115   148
  ///     64  2048  2048          112   146
  ///     32  2048  2048          112   150
  ///     64  1024  1024          129   151
  ///    128  2048  2048          140   143
  ///     64  2000  2048          152   150   (rows that do not collide)
  CutAlongK,
  /// With 256 bits the library reads b where it lies, unless the product is large on every side or b is not on a
  /// vector's boundary: it is copied by blocks into rows that do not collide. Each of two threads on the cores of an
  /// AMD EPYC of the Zen 3 generation, GFLOP/s:
  ///
  ///      m     n     k        whole  copied
  ///    512   512  2048           46      55
  ///    512   512   512           55      80
  ///     64  2048   784           39      64
  ///     32  1024   512           36      62
  ///    196  2048   512           43      89
  ///  12544   256    64           61      81
  ///    512  2048   512           71      57   (large on every side)
  ///   3136   128   512           82      80   (rows that do not collide)
  Blocks,
};
Feed chooseFeed(const GemmShape &shape);

/// Whether the library reads operands where they lie, on one thread with vectors of 256 bits.
bool feedsByBlocks();

/// Whether products of many rows with such a right operand, whose rows lie `pitch` elements apart, are Feed::Blocks.
bool copiesBlocks(bool transposed, int64_t pitch);

/// c = scale * op(a) * op(b), or c += ..., like gemm: by matrix units, where the machine has them and the product
/// suits, or by vectors. `packed`: null, or op(b). Throws dnnl::error.
void sgemm(const GemmShape &shape, float scale, const float *a, const float *b, float *c,
           const PackedOperand *packed = nullptr);

/// The same, Feed::Blocks.
void blockSgemm(const GemmShape &shape, float scale, const float *a, const float *b, float *c,
                const PackedOperand *packed);

/// The same, by vectors.
void vectorSgemm(const GemmShape &shape, float scale, const float *a, const float *b, float *c,
                 const PackedOperand *packed = nullptr);

} // namespace drt

#endif // DRT_CPU_KERNELS_SGEMM_H

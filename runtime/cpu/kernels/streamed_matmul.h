//===- streamed_matmul.h - Few rows times a large matrix -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_STREAMED_MATMUL_H
#define DRT_CPU_KERNELS_STREAMED_MATMUL_H

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/tiles.h"

namespace drt {

/// Some columns of the products of all replicas with one matrix, c_r = epilogue(a_r * op(b) + bias), as
/// drt_matmul_joined wants them. b passes once from memory, fetched while what came before it is multiplied; the
/// replicas' rows stay in the second-level cache. Belongs to one call site of one replica.
class StreamedMatmul {
public:
  /// Whether the product is one that this is for: enough rows, and not too many for the cache.
  static bool suits(const drt_matmul_desc &desc, int parts);

  /// Columns [begin, end) of the product. `kernels` are tileKernels(), or others in tests.
  StreamedMatmul(const TileKernels &kernels, const drt_matmul_desc &desc, int parts, int64_t begin, int64_t end,
                 Scratch &scratch);

  void run(ReplicatedOperand a, const float *b, const float *bias, float *c, int64_t cStride);

private:
  // Rows of b are the steps: they are packed, a chunk ahead.
  void multiplyPlain(ReplicatedOperand a, const float *b);
  void packRows(ReplicatedOperand a, int64_t step, int64_t depth);
  // b's rows are columns of the product: the product is made transposed, with b as the left operand as it lies.
  void multiplyTransposed(ReplicatedOperand a, const float *b, float *c, int64_t cStride);
  void packColumns(ReplicatedOperand a);
  void unpack(const float *transposed, int64_t pitch, int64_t first, int64_t last, float *c, int64_t cStride);

  const float *rowOf(ReplicatedOperand a, int64_t row) const;
  float *rowOf(float *c, int64_t cStride, int64_t row) const;

  const TileKernels &kernels;
  drt_matmul_desc desc;
  int64_t rows, begin, end; // rows of all replicas
  Buffer packedA, packedB, product;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_STREAMED_MATMUL_H

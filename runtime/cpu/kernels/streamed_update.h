//===- streamed_update.h - A gradient's product, block by block -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_STREAMED_UPDATE_H
#define DRT_CPU_KERNELS_STREAMED_UPDATE_H

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/tiles.h"

namespace drt {

/// The product of a gradient over the joined batch, sum over the replicas of a_r^T[m,k] * b_r[k,n], by blocks of
/// rows. While a block is multiplied, the variables that it will update are fetched, so that the update, which does
/// little to much memory, finds them in the second-level cache. Belongs to one call site of one replica.
class StreamedUpdate {
public:
  /// Whether the product is one that this is for: a is transposed, and b packed stays in the second-level cache.
  static bool suits(const drt_matmul_desc &desc, int parts);

  /// `kernels` are tileKernels(), or others in tests.
  StreamedUpdate(const TileKernels &kernels, const drt_matmul_desc &desc, int parts, Scratch &scratch);

  int64_t blockRows() const { return rowsOfBlock; }
  int64_t pitch() const { return rowPitch; } // n, or more

  /// Once a step, before the blocks.
  void packRight(ReplicatedOperand b);

  /// scale * the product's rows [row, row + rows), `pitch()` elements apart; valid until the next call. rows <=
  /// blockRows(). `variables` have the product's shape and are going to be read.
  const float *block(ReplicatedOperand a, int64_t row, int64_t rows, float scale, void *const *variables,
                     int numVariables);

private:
  void packLeft(ReplicatedOperand a, int64_t row, int64_t rows, float scale);

  const TileKernels &kernels;
  int64_t m, n, share, parts, rowPitch, rowsOfBlock;
  Buffer left, right, product, ragged;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_STREAMED_UPDATE_H

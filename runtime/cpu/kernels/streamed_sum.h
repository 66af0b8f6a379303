//===- streamed_sum.h - The sum of products over a long contracted axis -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_STREAMED_SUM_H
#define DRT_CPU_KERNELS_STREAMED_SUM_H

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/tiles.h"

#include <algorithm>

namespace drt {

/// Rows of the sum of a_i^T[m,k] * b_i[k,n] over `terms` matrices that lie anywhere: one product whose contracted axis
/// is that of all terms behind each other. It is cut into blocks of steps, of which both operands are packed, and which
/// add to tiles of the sum; what comes next of the b_i is packed meanwhile. Belongs to one call site of one core.
class StreamedSum {
public:
  /// Whether it can be computed so.
  static bool suits(const drt_matmul_desc &desc);

  /// At most `maxRows` of the product's rows a call. `kernels` are tileKernels(), or others in tests.
  StreamedSum(const TileKernels &kernels, const drt_matmul_desc &desc, int64_t terms, int64_t maxRows,
              Scratch &scratch);

  /// scale * the sum's `rows` are written behind each other to c. `a`, `b`: the terms' matrices.
  void run(const void *const *a, const void *const *b, Range rows, float scale, float *c);

  /// The same of a left operand that lies in no matrix: packRows(first, count, step, depth, to) writes the steps
  /// [step, step + depth) of `count` rows to `to`, those of a step behind each other.
  template <class PackRows> void runPacked(PackRows packRows, const void *const *b, Range rows, float scale, float *c);

private:
  template <class Visit> void forEachTerm(int64_t step, int64_t depth, Visit visit) const;
  void begin(const void *const *b);
  void multiply(const void *const *b, int64_t rows, int64_t step);
  int64_t depthAt(int64_t step) const { return std::min(depthOfBlock, steps - step); }
  Packing packingRight(const void *const *b, int64_t step, int64_t depth, int64_t column, float *to) const;
  void packLastPanel(const void *const *b, int64_t step, int64_t depth, int64_t column, float *to) const;
  void unpack(int64_t rows, float scale, float *c) const;

  const TileKernels &kernels;
  int64_t m, n, k, steps, depthOfBlock; // of equal blocks but for the last one
  Buffer left, right, product; // of the product each tile lies dense, those of a panel of columns behind each other
  float *now = nullptr, *next = nullptr; // chunks of the right operand
};

/// `length` elements of each of `runs` runs, `pitch` apart, to places that are `apart` apart.
void copyRuns(const float *from, int64_t pitch, int64_t runs, int64_t length, float *to, int64_t apart);

template <class PackRows>
void StreamedSum::runPacked(PackRows packRows, const void *const *b, Range rows, float scale, float *c) {
  begin(b);
  for (int64_t step = 0; step < steps; step += depthOfBlock) {
    const int64_t depth = depthAt(step);
    float *to = left.as<float>();
    for (int64_t first = rows.begin; first < rows.end; first += kernels.rows) {
      const int64_t count = std::min<int64_t>(kernels.rows, rows.end - first);
      packRows(first, count, step, depth, to);
      to += count * depth;
    }
    multiply(b, rows.size(), step);
  }
  unpack(rows.size(), scale, c);
}

} // namespace drt

#endif // DRT_CPU_KERNELS_STREAMED_SUM_H

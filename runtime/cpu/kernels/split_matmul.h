//===- split_matmul.h - Products of float32 on matrix units -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SPLIT_MATMUL_H
#define DRT_CPU_KERNELS_SPLIT_MATMUL_H

#include "cpu/kernels/gemm.h"
#include "cpu/kernels/matrix_units.h"

#include <cstdint>
#include <span>

namespace drt {
class PackedOperand;

/// Whether this machine's matrix units compute a product faster than the library: they are there, and each element that
/// is packed is used often enough.
bool suitsMatrixUnits(const GemmShape &shape);

/// One left operand of several that meet the same right one, and its product.
struct LeftOperand {
  const float *a;
  float *c;
};

/// A right operand in parts, packed before the products that have it: panels behind each other, of all steps each.
class SplitPanels {
public:
  /// In `bytes(steps, columns)` bytes at `memory`, on a cache line.
  SplitPanels(void *memory, int64_t steps, int64_t columns);

  static int64_t bytes(int64_t steps, int64_t columns);
  static int64_t count(int64_t columns);

  /// Packs the panels [begin, end) of them.
  void pack(const SplitOperand &right, int64_t begin, int64_t end);

  /// From a step on at which a product is cut.
  const char *at(int64_t step, int64_t column) const;
  /// Whether all elements of the panel have parts, of the steps until a product is cut again.
  bool complete(int64_t step, int64_t column) const { return flag(step, column) != 0; }

private:
  char &flag(int64_t step, int64_t column) const;

  int64_t steps, columns, depth; // of as many steps is what a product takes at once
  char *flags, *panels;
};

/// c = scale * op(a) * op(b), or c += ..., of each of the left operands, which all have the shape. What of b has no
/// parts on matrix units (matrix_units.h) is multiplied by vectors. `packed`: null, or op(b). Throws dnnl::error.
void splitMatmul(const GemmShape &shape, float scale, std::span<const LeftOperand> lefts, const float *b,
                 const PackedOperand *packed = nullptr);

/// Whether the sum of products below is one that splitSum makes: of whole groups of steps.
bool suitsSplitSum(const GemmShape &shape, int64_t terms);

/// c = scale * the sum of a_i^T b_i, or c += ..., over matrices that lie anywhere: shape.transposeA, not
/// shape.transposeB, and shape.k is one term's. Throws dnnl::error.
void splitSum(const GemmShape &shape, float scale, std::span<const void *const> a, const void *const *b, float *c);

/// A left operand that lies in no matrix, but can be packed.
class GatheredOperand {
public:
  virtual ~GatheredOperand() = default;
  /// As MatrixUnits::packLeft, of a range whose lanes begin at a whole panel and whose steps begin at a whole group.
  virtual bool pack(const MatrixUnits &units, const SplitRange &range, char *to) = 0;
};

/// c[rows, columns] = left * right, of `depth` steps; rows of c lie dense. False: an element has no parts on matrix
/// units, and c is of no use.
bool splitGathered(int64_t rows, int64_t columns, int64_t depth, GatheredOperand &left, const SplitOperand &right,
                   float *c);

} // namespace drt

#endif // DRT_CPU_KERNELS_SPLIT_MATMUL_H

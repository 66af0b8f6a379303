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

/// Whether this machine's matrix units compute a product faster than the library: they are there, and each element that
/// is packed is used often enough.
bool suitsMatrixUnits(const GemmShape &shape);

/// One left operand of several that meet the same right one, and its product.
struct LeftOperand {
  const float *a;
  float *c;
};

/// c = scale * op(a) * op(b), or c += ..., of each of the left operands, which all have the shape. What of b has no
/// parts on matrix units (matrix_units.h) is multiplied by vectors. Throws dnnl::error.
void splitMatmul(const GemmShape &shape, float scale, std::span<const LeftOperand> lefts, const float *b);

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

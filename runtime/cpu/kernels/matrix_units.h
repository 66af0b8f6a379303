//===- matrix_units.h - Products of float32 on matrix units of bfloat16 -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Processors with AMX multiply tiles of 16 x 32 and 32 x 16 bfloat16, whose sums
// are float32, at sixteen times the rate of their vectors of float32. A float32 is
// the sum of three bfloat16 (8 + 8 + 8 bits of its 24), so a product of float32 is
// the sum of nine of theirs, of which the three least are below 2^-24 of it:
//
//   a b = ah bh + ah bm + am bh + am bm + ah bl + al bh
//
// Sums of 32 steps are made apart before they are added to a tile, so that the
// result is nearer to the exact one than that of a loop over float32: 0.42 of its
// error for 128 to 8,192 steps. A product with 1 is exact. What bfloat16 cannot
// hold, infinities, NaN and the last half percent below the largest float, is
// reported by the packing functions, and then vectors multiply. Parts below 2^-126
// are zeros, as with denormals flushed: operands below about 1e-33 lose bits.
//
// One core of a Xeon of the Sapphire Rapids generation has 370 GFLOP/s of float32
// so, of packed random numbers (590 of zeros: the clock follows what they switch),
// where its vectors have 180.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_MATRIX_UNITS_H
#define DRT_CPU_KERNELS_MATRIX_UNITS_H

#include <cstdint>
#include <span>

namespace drt {

/// An operand of float32 that is going to be packed. Its steps are those of the contracted axis; its lanes are the rows
/// of a left operand, or the columns of a right one.
struct SplitOperand {
  const float *data;
  int64_t pitch;     // elements between two rows in memory,
  bool stepsAreRows; // which are steps, or lanes
  /// Not null: the steps are those of several matrices behind each other, `stepsOfTerm` of each, in whole groups
  /// (MatrixUnits::group). `data` is not used.
  const void *const *terms = nullptr;
  int64_t stepsOfTerm = 0;

  const float *at(int64_t step, int64_t lane) const {
    const float *from = data;
    if (terms) {
      from = static_cast<const float *>(terms[step / stepsOfTerm]);
      step %= stepsOfTerm;
    }
    return from + (stepsAreRows ? step * pitch + lane : lane * pitch + step);
  }
};

/// What of an operand is packed: `depth` steps from `step` on, of `lanes` lanes from `lane` on.
struct SplitRange {
  int64_t step, depth, lane, lanes;
};

/// A panel of the right operand, which is packed while another one is multiplied: the arithmetic hides it. Nothing
/// where the range has no depth.
struct PanelPacking {
  SplitOperand right = {};
  SplitRange range = {};
  char *to = nullptr; // on a cache line

  /// Afterwards: whether all of its elements have parts.
  bool complete = true;
};

/// Rows of the left operand, packed, and where their sums go.
struct PackedRows {
  const char *left;
  int64_t count;
  float *c;
};

/// What a core's matrix units do. Packed operands lie in panels of `panel` rows of the left operand, or columns of the
/// right one, each of whole groups of `group` steps; what is missing to whole ones is zeros.
struct MatrixUnits {
  static constexpr int64_t panel = 32, group = 32, tile = 16;
  /// Of a packed panel's group of steps, in bytes.
  static constexpr int64_t groupBytes = panel * group * 3 * 2;
  /// Products of more steps are made in parts: between them sums go to memory and back, while with more the packed rows
  /// would leave no room in the second-level cache. With 256, 64 x 128 x 1024 has 137 GFLOP/s and 1024 x 1024 x 1024
  /// 196; with 512 they have 149 and 199, and with 1024 154 and 151.
  static constexpr int64_t depth = 512;

  static int64_t packedBytes(int64_t rows, int64_t depth) { return (rows + panel - 1) / panel * panelBytes(depth); }
  static int64_t panelBytes(int64_t depth) { return (depth + group - 1) / group * groupBytes; }

  /// Packs scale * left to `to`, on a cache line. False: an element has no parts, and what is packed is of no use.
  bool (*packLeft)(const SplitOperand &left, const SplitRange &range, float scale, char *to);
  /// The same of rows in memory that lie anywhere, as the windows of images do. With `stepsAreRows` the step s of the
  /// 16 lanes from 16 i on lies at rows[i * depth + s]; else the steps of group g of lane l lie at rows[g * lanes + l].
  /// Whole groups of 16 lanes, or of steps.
  bool (*packRows)(const float *const *rows, bool stepsAreRows, int64_t depth, int64_t lanes, char *to);
  void (*packRight)(PanelPacking &packing);

  /// Columns [column, column + columns) of c = left * right, or c +=, of rows and a panel of the right operand; rows of
  /// c are `ldc` apart. `next` is packed meanwhile.
  void (*multiply)(std::span<const PackedRows> rows, const char *right, int64_t depth, int64_t column, int64_t columns,
                   int64_t ldc, bool add, PanelPacking &next);
};

/// Null where the processor has none (AMX with bfloat16 beside AVX-512), or the system does not let the process use
/// them.
const MatrixUnits *matrixUnits();

} // namespace drt

#endif // DRT_CPU_KERNELS_MATRIX_UNITS_H

//===- score_rows.h - Rows of an attention's scores -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SCORE_ROWS_H
#define DRT_CPU_KERNELS_SCORE_ROWS_H

#include <cstdint>

namespace drt {

/// Loops over one row of `count` numbers, for the machine's vectors. A NaN in a row shows in its results.
struct ScoreRows {
  float (*largest)(const float *row, int64_t count);
  /// Each becomes the exponential of what it is below `largest`; their sum.
  float (*exponentiate)(float *row, int64_t count, float largest);
  /// The same, times a factor: what is above `largest` counts as equal to it.
  void (*probabilities)(float *row, int64_t count, float largest, float factor);
  /// gradient = probability * (gradient - dot).
  void (*gradients)(const float *probabilities, float *gradients, int64_t count, float dot);
  float (*dot)(const float *one, const float *other, int64_t count);
  void (*scale)(float *row, int64_t count, float factor);
  /// row += bias, of so many numbers or, with `step` 0, of one.
  void (*add)(float *row, const float *bias, int64_t step, int64_t count);
};

/// The widest that this machine has.
const ScoreRows &scoreRows();
/// All that it has, the widest first; ends with null.
const ScoreRows *const *allScoreRows();

} // namespace drt

#endif // DRT_CPU_KERNELS_SCORE_ROWS_H

//===- filter_gradient.h - Gradients of filters by own tiles -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The gradient of a filter is the product of the images' windows, a row for each of the filter's elements and inputs,
// with the outputs' gradients: its contracted axis are the pixels of all outputs. With vectors of 256 bits the library
// computes it at two thirds of a convolution's rate; of each of two threads on the cores of an AMD EPYC of the Zen 3
// generation, GFLOP/s:
//
//   image          filter          library   tiles
//   4x56x56x64     3x3x64x64            49      78
//   4x28x28x128    3x3x128x128          62      85
//   4x14x14x256    3x3x256x256          65      87
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_FILTER_GRADIENT_H
#define DRT_CPU_KERNELS_FILTER_GRADIENT_H

#include "cpu/kernels/scratch.h"
#include "cpu/kernels/streamed_sum.h"
#include "drt/drt.h"

namespace drt {

/// Belongs to one call site of one core.
class FilterGradient {
public:
  /// Whether it can be computed so: of float32, HWIO, without groups, with enough elements of a window side by side.
  static bool suits(const drt_conv2d_desc &desc);

  /// `kernels` are tileKernels(), or others in tests.
  FilterGradient(const TileKernels &kernels, const drt_conv2d_desc &desc, Scratch &scratch);

  /// `input`: images NHWC; `outputGrad`: NHWC; filterGrad is written.
  void run(const float *input, const float *outputGrad, float *filterGrad);

private:
  void packRows(const float *input, int64_t first, int64_t count, int64_t step, int64_t depth, float *to) const;

  drt_conv2d_desc desc;
  int64_t rows, length, blockRows; // elements that lie together in an image
  StreamedSum sum;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_FILTER_GRADIENT_H

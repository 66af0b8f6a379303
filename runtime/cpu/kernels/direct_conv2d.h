//===- direct_conv2d.h - Convolutions by their definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// For float64, which oneDNN does not convolve, and for empty tensors. No bias and
// no epilogue. Outputs are overwritten, never read.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_DIRECT_CONV2D_H
#define DRT_CPU_KERNELS_DIRECT_CONV2D_H

#include "drt/drt.h"

namespace drt {

/// How far apart a filter's elements lie whose places differ by one along an axis, in elements. The outputs of a group
/// follow those of the one before.
struct FilterSteps {
  int64_t row, column, input, output;
};

/// Throws std::runtime_error for a layout that is none of DRT_FILTER_*.
FilterSteps getFilterSteps(const drt_conv2d_desc &desc);

template <class T> void directConv2d(const drt_conv2d_desc &desc, const T *input, const T *filter, T *output);
template <class T>
void directConv2dGradInput(const drt_conv2d_desc &desc, const T *filter, const T *outputGrad, T *inputGrad);
template <class T>
void directConv2dGradFilter(const drt_conv2d_desc &desc, const T *input, const T *outputGrad, T *filterGrad);

extern template void directConv2d(const drt_conv2d_desc &, const float *, const float *, float *);
extern template void directConv2d(const drt_conv2d_desc &, const double *, const double *, double *);
extern template void directConv2dGradInput(const drt_conv2d_desc &, const float *, const float *, float *);
extern template void directConv2dGradInput(const drt_conv2d_desc &, const double *, const double *, double *);
extern template void directConv2dGradFilter(const drt_conv2d_desc &, const float *, const float *, float *);
extern template void directConv2dGradFilter(const drt_conv2d_desc &, const double *, const double *, double *);

} // namespace drt

#endif // DRT_CPU_KERNELS_DIRECT_CONV2D_H

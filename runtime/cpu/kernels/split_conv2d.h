//===- split_conv2d.h - Convolutions of float32 on matrix units -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A convolution is a product of the images' windows, a row for each pixel of the
// output and a column for each element of a window, with the filter; so are its
// gradients. The windows are packed for matrix units from where their pixels lie.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SPLIT_CONV2D_H
#define DRT_CPU_KERNELS_SPLIT_CONV2D_H

#include "drt/drt.h"

namespace drt {

/// What of a convolution is computed.
enum class ConvolutionPass { Forward, GradInput, GradFilter };

/// Whether matrix units compute it faster than the library: of float32, HWIO, without groups, whose channels are whole
/// groups of steps, and enough of them; a gradient of an input without strides.
bool suitsMatrixUnits(const drt_conv2d_desc &desc, ConvolutionPass pass);

/// Without bias and epilogue. False: an element has no parts (matrix_units.h), and the result is of no use. Images are
/// NHWC.
bool splitConv2d(const drt_conv2d_desc &desc, const float *input, const float *filter, float *output);
bool splitConv2dGradInput(const drt_conv2d_desc &desc, const float *filter, const float *outputGrad, float *inputGrad);
bool splitConv2dGradFilter(const drt_conv2d_desc &desc, const float *input, const float *outputGrad, float *filterGrad);

} // namespace drt

#endif // DRT_CPU_KERNELS_SPLIT_CONV2D_H

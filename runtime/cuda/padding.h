//===- padding.h - Padding that is not symmetric --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_PADDING_H
#define DRT_CUDA_PADDING_H

#include <algorithm>
#include <cstdint>

namespace drt::cuda {

/// One axis of a convolution. cuDNN pads both sides alike, and insists on as many outputs as then fit. Where that is
/// not what drt.h's padding says (TensorFlow's SAME often pads one more behind the image), the convolution runs over a
/// copy of the image that has the axis' padding in it, and the library pads nothing.
struct PaddedAxis {
  int64_t size;    // of what the library is given
  int64_t before;  // elements of padding in it before the image's
  int64_t shared;  // elements of the image in it: no window reaches those behind
  int64_t padding; // that the library adds, on both sides
  bool copied;

  static PaddedAxis make(int64_t image, int64_t window, int64_t outputs, int64_t stride, int64_t dilation,
                         int64_t before) {
    // Elements from the first to the last that a window reaches, padding included.
    const int64_t reached = (outputs - 1) * stride + (window - 1) * dilation + 1;
    const int64_t rest = image + 2 * before - reached;
    if (rest >= 0 && rest < stride)
      return {image, 0, image, before, false};
    return {reached, before, std::clamp<int64_t>(reached - before, 0, image), 0, true};
  }
};

} // namespace drt::cuda

#endif // DRT_CUDA_PADDING_H

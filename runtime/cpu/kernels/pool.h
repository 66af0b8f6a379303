//===- pool.h - Pooling and its gradient -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Own loops over NHWC images, vectorized over the channels, which is what bounds
// pooling: memory. Nothing is prepared, so there is no call site. float32 and
// float64; throws std::runtime_error for other types.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_POOL_H
#define DRT_CPU_KERNELS_POOL_H

#include "drt/drt.h"

namespace drt {

/// A window that lies in the padding alone gives the smallest number (maximum) or 0
/// (average).
void pool(const drt_pool_desc &desc, const void *input, void *output);

/// The maximum's gradient goes to the first largest element of the window, in the order
/// of rows, found again from `input`; a window full of NaN passes nothing on.
void poolGrad(const drt_pool_desc &desc, const void *input, const void *output, const void *outputGrad,
              void *inputGrad);

} // namespace drt

#endif // DRT_CPU_KERNELS_POOL_H

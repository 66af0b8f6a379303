//===- conv2d.h - Convolutions of a replica and their gradients -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What drt_conv2d and its gradients do, for a given cache of call sites. See drt.h
// for layouts and arguments. All throw dnnl::error or std::runtime_error, and only
// at the first call of a site.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_CONV2D_H
#define DRT_CPU_KERNELS_CONV2D_H

#include "cpu/kernels/primitives.h"

namespace drt {

void conv2d(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input, const void *filter,
            const void *bias, void *output);
void conv2dGradInput(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *filter,
                     const void *outputGrad, void *inputGrad);
void conv2dGradFilter(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input,
                      const void *outputGrad, void *filterGrad);

} // namespace drt

#endif // DRT_CPU_KERNELS_CONV2D_H

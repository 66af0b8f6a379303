//===- convolutions.cpp - drt.h's convolutions, which need oneDNN ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/guarded.h"
#include "cpu/kernels/conv2d.h"

using namespace drt;

extern "C" {
void drt_conv2d(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                const void *filter, const void *bias, void *output) {
  guarded(replica, [&](PrimitiveCache &cache) { conv2d(cache, primitive, *desc, input, filter, bias, output); });
}

void drt_conv2d_grad_input(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *filter,
                           const void *output_grad, void *input_grad) {
  guarded(replica,
          [&](PrimitiveCache &cache) { conv2dGradInput(cache, primitive, *desc, filter, output_grad, input_grad); });
}

void drt_conv2d_grad_filter(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                            const void *output_grad, void *filter_grad) {
  guarded(replica,
          [&](PrimitiveCache &cache) { conv2dGradFilter(cache, primitive, *desc, input, output_grad, filter_grad); });
}
} // extern "C"

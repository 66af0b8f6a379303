//===- libraries.cpp - drt.h's library calls, but for convolutions===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/guarded.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/pool.h"

using namespace drt;

extern "C" {
void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                const void *bias, void *c) {
  guarded(replica, [&](PrimitiveCache &cache) { matmul(cache, primitive, *desc, a, b, bias, c); });
}

void drt_matmul_joined(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t c_stride, const void *a0, const void *b, const void *bias, void *c0) {
  drt_barrier(replica);
  guarded(replica, [&](PrimitiveCache &cache) {
    matmulJoined(cache, primitive, *desc, replica->local_index, replica->local_replicas, {a0, a_stride}, b, bias, c0,
                 c_stride);
  });
  drt_barrier(replica);
}

void drt_matmul_update(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t b_stride, const void *a0, const void *b0, double scale, drt_range_kernel kernel,
                       void *const *arguments, int32_t num_variables) {
  guarded(replica, [&](PrimitiveCache &cache) {
    matmulUpdate(cache, primitive, *desc, replica->local_index, replica->local_replicas, {a0, a_stride}, {b0, b_stride},
                 scale, kernel, arguments, num_variables);
  });
}

void drt_pool(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, void *output) {
  guarded(replica, [&](PrimitiveCache &) { pool(*desc, input, output); });
}

void drt_pool_grad(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, const void *output,
                   const void *output_grad, void *input_grad) {
  guarded(replica, [&](PrimitiveCache &) { poolGrad(*desc, input, output, output_grad, input_grad); });
}
} // extern "C"

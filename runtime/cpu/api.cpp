//===- api.cpp - drt.h's library calls -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/matmul.h"

#include <exception>

using namespace drt;

namespace {
// No exception crosses the C border.
template <class Call> void guarded(drt_replica *replica, Call call) {
  try {
    call(primitivesOf(*replica));
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}
} // namespace

extern "C" {
void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                const void *bias, void *c) {
  guarded(replica, [&](PrimitiveCache &cache) { matmul(cache, primitive, *desc, a, b, bias, c); });
}

void drt_matmul_update(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t b_stride, const void *a0, const void *b0, double scale, drt_range_kernel kernel,
                       void *const *arguments) {
  guarded(replica, [&](PrimitiveCache &cache) {
    matmulUpdate(cache, primitive, *desc, replica->local_index, replica->local_replicas, {a0, a_stride}, {b0, b_stride},
                 scale, kernel, arguments);
  });
}
} // extern "C"

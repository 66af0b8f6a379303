//===- libraries.cpp - drt.h's library calls, but for convolutions===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cpu/guarded.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/pool.h"

using namespace drt;

namespace {

// Which part of what the task's replicas compute together is that of one core of one of them.
Share shareOf(const Replica &replica, int core, int cores) {
  return {replica.local_index * cores + core, replica.local_replicas * cores};
}

drt_pool_desc imagesOf(drt_pool_desc desc, Range images) {
  desc.n = images.size();
  return desc;
}

// Null stays null: an average's gradient needs neither input nor output.
const void *at(const void *data, int64_t bytes) { return data ? static_cast<const char *>(data) + bytes : nullptr; }
void *at(void *data, int64_t bytes) { return static_cast<char *>(data) + bytes; }

} // namespace

extern "C" {
void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                const void *bias, void *c) {
  guarded(replica, [&](Replica &replica) {
    const MatmulParts parts = matmulParts(*desc);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range part) {
      matmul(core.primitives, primitive, *desc, part, a, b, bias, c);
    });
  });
}

void drt_matmul_joined(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t c_stride, const void *a0, const void *b, const void *bias, void *c0) {
  drt_barrier(replica);
  guarded(replica, [&](Replica &replica) {
    replica.onEachCore([&](int core, int cores) {
      matmulJoined(replica.cores[core].primitives, primitive, *desc, shareOf(replica, core, cores),
                   {a0, a_stride, replica.local_replicas}, b, bias, c0, c_stride);
    });
  });
  drt_barrier(replica);
}

void drt_matmul_update(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t b_stride, const void *a0, const void *b0, double scale, drt_range_kernel kernel,
                       void *const *arguments, int32_t num_variables) {
  guarded(replica, [&](Replica &replica) {
    replica.onEachCore([&](int core, int cores) {
      matmulUpdate(replica.cores[core].primitives, primitive, *desc, shareOf(replica, core, cores),
                   {a0, a_stride, replica.local_replicas}, {b0, b_stride, replica.local_replicas}, scale, kernel,
                   arguments, num_variables);
    });
  });
}

void drt_pool(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, void *output) {
  guarded(replica, [&](Replica &replica) {
    const int64_t size = dtypeSize(desc->dtype), in = desc->h * desc->w * desc->c, out = desc->oh * desc->ow * desc->c;
    replica.divide(desc->n, grainOf(out * desc->kh * desc->kw), [&](Replica::Core &, Range images) {
      pool(imagesOf(*desc, images), at(input, images.begin * in * size), at(output, images.begin * out * size));
    });
  });
}

void drt_pool_grad(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, const void *output,
                   const void *output_grad, void *input_grad) {
  guarded(replica, [&](Replica &replica) {
    const int64_t size = dtypeSize(desc->dtype), in = desc->h * desc->w * desc->c, out = desc->oh * desc->ow * desc->c;
    replica.divide(desc->n, grainOf(out * desc->kh * desc->kw), [&](Replica::Core &, Range images) {
      const int64_t first = images.begin * in * size, second = images.begin * out * size;
      poolGrad(imagesOf(*desc, images), at(input, first), at(output, second), at(output_grad, second),
               at(input_grad, first));
    });
  });
}
} // extern "C"

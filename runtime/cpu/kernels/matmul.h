//===- matmul.h - Matrix products of a replica -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What drt_matmul and drt_matmul_update do, for a given cache of call sites. See
// drt.h for the meaning of the arguments. Both throw dnnl::error or
// std::runtime_error, and only at the first call of a site.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_MATMUL_H
#define DRT_CPU_KERNELS_MATMUL_H

#include "core/ranges.h"
#include "cpu/kernels/primitives.h"

namespace drt {

/// What a product is made of that can be computed apart: rows, or the matrices of a batch.
struct MatmulParts {
  int64_t count;
  int64_t grain; // as many at least are worth a core of their own; `count`: the product is computed whole
};
MatmulParts matmulParts(const drt_matmul_desc &desc);

/// Those of `parts`, matmulParts(desc); the same ones at each call of a site. a, b and c are the whole's; `packed`:
/// null, or b as drt_pack left it.
void matmul(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range parts, const void *a, const void *b,
            const void *bias, void *c, const void *packed = nullptr);

/// drt_matmul_stacked; the parts are left operands.
MatmulParts matmulStackedParts(const drt_matmul_desc &desc, int64_t count);
void matmulStacked(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range lefts, int64_t count,
                   void *const *operands, const void *b, const void *bias);

/// drt_matmul_sum; the parts are rows.
MatmulParts matmulSumParts(const drt_matmul_desc &desc, int64_t terms);
void matmulSum(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range rows, int64_t terms,
               void *const *operands, void *c);

/// Where the task's replicas keep an operand: replica r's at base + r * stride bytes.
struct ReplicatedOperand {
  const void *base;
  int64_t stride;
  int replicas;
};

/// Who computes what all do together: number `index` of `count`.
struct Share {
  int index, count;
};

/// Computes the rows of the product that are one share, in blocks that stay in the second-level cache, and hands each
/// to `kernel`. The first `numVariables` arguments have the product's shape; where it is known, they are fetched ahead.
void matmulUpdate(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Share share, ReplicatedOperand a,
                  ReplicatedOperand b, double scale, drt_range_kernel kernel, void *const *arguments,
                  int numVariables = 0);

/// The columns of a product that are one share of drt_matmul_joined, which may be none.
Range columnsOfShare(int64_t columns, Share share);

// drt_matmul_joined, the columns that are one share, without joining the replicas. `packed`: null, or op(b)'s.
void matmulJoined(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Share share, ReplicatedOperand a,
                  const void *b, const void *bias, void *c, int64_t cStride, const void *packed = nullptr);

} // namespace drt

#endif // DRT_CPU_KERNELS_MATMUL_H

//===- reduce.h - Sums of the replicas' contributions ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_REDUCE_H
#define DRT_COLLECTIVES_REDUCE_H

#include "core/dtype.h"
#include "drt/drt.h"

#include <cstdint>

namespace drt {

/// Where the contributions to a bucket lie: `parts` of them, `stride` bytes apart.
struct Contributions {
  const char *first;
  int64_t stride;
  int32_t parts;
};

/// out[i] = (sum over the contributions of element i) / divisor, for i in
/// [0, count); the sum is taken in the order of the replicas, so that it does not
/// depend on how the elements are cut into ranges. `out` may be the first
/// contribution itself. float16 and bfloat16 are summed in float32.
void reduce(drt_dtype dtype, void *out, Contributions contributions, int64_t count, int64_t divisor);

/// As above of contributions that lie anywhere: `parts` of them, one or more.
void reduce(drt_dtype dtype, void *out, const char *const *contributions, int32_t parts, int64_t count,
            int64_t divisor);

/// Where the joined rows of a gathered bucket lie behind the first replica's own, in bytes.
inline int64_t gatheredOffset(const drt_bucket &bucket) {
  return (bucket.count * dtypeSize(bucket.dtype) + 63) / 64 * 64;
}

} // namespace drt

#endif // DRT_COLLECTIVES_REDUCE_H

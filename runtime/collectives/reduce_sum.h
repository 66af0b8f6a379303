//===- reduce_sum.h - out = a + b, for each type that is reduced -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_REDUCE_SUM_H
#define DRT_COLLECTIVES_REDUCE_SUM_H

#include "drt/drt.h"

#include <cstddef>
#include <cstdint>

namespace drt {

/// out[i] = a[i] + b[i] for i < count; out may be a or b. Integers wrap.
using SumFunction = void (*)(void *out, const void *a, const void *b, size_t count);

struct SumType {
  SumFunction sum;
  size_t element_size;
};

/// Throws Error for a type that is not reduced between tasks.
SumType sum_type(drt_dtype dtype);

} // namespace drt

#endif // DRT_COLLECTIVES_REDUCE_SUM_H

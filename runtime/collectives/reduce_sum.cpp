//===- reduce_sum.cpp - out = a + b, for each type that is reduced -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce_sum.h"

#include "core/error.h"

#include <string>

namespace drt {

namespace {
template <class T> void sum(void *out, const void *a, const void *b, size_t count) {
  T *o = static_cast<T *>(out);
  const T *x = static_cast<const T *>(a);
  const T *y = static_cast<const T *>(b);
  for (size_t i = 0; i < count; ++i)
    o[i] = x[i] + y[i];
}
} // namespace

SumType sum_type(drt_dtype dtype) {
  switch (dtype) {
  case DRT_F32:
    return {sum<float>, 4};
  case DRT_F64:
    return {sum<double>, 8};
  case DRT_I32: // unsigned, since overflow wraps there
    return {sum<uint32_t>, 4};
  case DRT_I64:
    return {sum<uint64_t>, 8};
  default:
    throw Error("all-reduce between tasks of TensorFlow type " + std::to_string(dtype) +
                " is not supported: it knows float32, float64, int32 and int64");
  }
}

} // namespace drt

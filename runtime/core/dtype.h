//===- dtype.h - Sizes and names of element types -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_DTYPE_H
#define DRT_CORE_DTYPE_H

#include "drt/drt.h"

#include <cstdint>
#include <string>

namespace drt {

/// Bytes of one element; 0 for a number that is no drt_dtype.
int64_t dtypeSize(int32_t dtype);

/// "float32", as numpy and TensorFlow name it; "dtype 77" for an unknown number.
std::string dtypeName(int32_t dtype);

/// Elements of a type: the product of its extents, 1 for a scalar.
int64_t elementCount(const drt_type &type);

/// "(64, 784)", as numpy prints a shape; "()" for a scalar.
std::string shapeName(const int64_t *shape, int32_t rank);
inline std::string shapeName(const drt_type &type) { return shapeName(type.shape, type.rank); }

} // namespace drt

#endif // DRT_CORE_DTYPE_H

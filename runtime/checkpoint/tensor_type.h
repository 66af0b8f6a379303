//===- tensor_type.h - Sizes and names of types and shapes -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_TENSOR_TYPE_H
#define DRT_CHECKPOINT_TENSOR_TYPE_H

#include <cstdint>
#include <string>
#include <vector>

namespace drt {

// A checkpoint may hold types that programs never have (unsigned ones, complex
// ones, strings), so these are more than drt_dtype's.

// TensorFlow's number for strings, the one type without a fixed size that
// checkpoints hold. drt_dtype has no name for it.
inline constexpr int32_t kStringDtype = 7;

// Bytes of one element of a TensorFlow type; 0 for strings and unknown types.
int64_t elementSize(int32_t dtype);

// "float32"; "type 99" for an unknown one.
std::string typeName(int32_t dtype);

// "[784,512]", "[]" for a scalar.
std::string shapeText(const std::vector<int64_t> &shape);

// Elements of a shape; -1 where an extent is negative or the bytes of a tensor
// of that many 16-byte elements would overflow.
int64_t shapeElements(const std::vector<int64_t> &shape);

} // namespace drt
#endif // DRT_CHECKPOINT_TENSOR_TYPE_H

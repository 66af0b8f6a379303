//===- tensor_type.cpp - Sizes and names of types and shapes ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/tensor_type.h"

namespace drt {
namespace {

struct Dtype {
  int32_t number;
  int32_t size;
  const char *name;
};

// types.proto of TensorFlow; what a checkpoint may hold.
constexpr Dtype kDtypes[] = {
    {1, 4, "float32"},  {2, 8, "float64"},      {3, 4, "int32"},          {4, 1, "uint8"},     {5, 2, "int16"},
    {6, 1, "int8"},     {7, 0, "string"},       {8, 8, "complex64"},      {9, 8, "int64"},     {10, 1, "bool"},
    {11, 1, "qint8"},   {12, 1, "quint8"},      {13, 4, "qint32"},        {14, 2, "bfloat16"}, {15, 2, "qint16"},
    {16, 2, "quint16"}, {17, 2, "uint16"},      {18, 16, "complex128"},   {19, 2, "float16"},  {22, 4, "uint32"},
    {23, 8, "uint64"},  {24, 1, "float8_e5m2"}, {25, 1, "float8_e4m3fn"},
};

const Dtype *lookUp(int32_t number) {
  for (const Dtype &dtype : kDtypes)
    if (dtype.number == number)
      return &dtype;
  return nullptr;
}

} // namespace

int64_t elementSize(int32_t number) {
  const Dtype *dtype = lookUp(number);
  return dtype ? dtype->size : 0;
}

std::string typeName(int32_t number) {
  const Dtype *dtype = lookUp(number);
  return dtype ? dtype->name : "type " + std::to_string(number);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t shapeElements(const std::vector<int64_t> &shape) {
  int64_t count = 1, bytes = 0;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      return -1;
  return __builtin_mul_overflow(count, int64_t(16), &bytes) ? -1 : count;
}

} // namespace drt

//===- dtype.cpp - Sizes and names of element types -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"

namespace drt {

int64_t dtypeSize(int32_t dtype) {
  switch (dtype) {
  case DRT_U8:
  case DRT_I8:
  case DRT_BOOL:
    return 1;
  case DRT_I16:
  case DRT_BF16:
  case DRT_F16:
    return 2;
  case DRT_F32:
  case DRT_I32:
    return 4;
  case DRT_F64:
  case DRT_I64:
    return 8;
  default:
    return 0;
  }
}

std::string dtypeName(int32_t dtype) {
  switch (dtype) {
  case DRT_F32:
    return "float32";
  case DRT_F64:
    return "float64";
  case DRT_I32:
    return "int32";
  case DRT_U8:
    return "uint8";
  case DRT_I16:
    return "int16";
  case DRT_I8:
    return "int8";
  case DRT_I64:
    return "int64";
  case DRT_BOOL:
    return "bool";
  case DRT_BF16:
    return "bfloat16";
  case DRT_F16:
    return "float16";
  // Programs take none of these, but data may have them.
  case 8:
    return "complex64";
  case 17:
    return "uint16";
  case 18:
    return "complex128";
  case 22:
    return "uint32";
  case 23:
    return "uint64";
  default:
    return "dtype " + std::to_string(dtype);
  }
}

int64_t elementCount(const drt_type &type) {
  int64_t count = 1;
  for (int32_t i = 0; i < type.rank; ++i)
    count *= type.shape[i];
  return count;
}

std::string shapeName(const int64_t *shape, int32_t rank) {
  std::string out = "(";
  for (int32_t i = 0; i < rank; ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (rank == 1 ? ",)" : ")");
}

} // namespace drt

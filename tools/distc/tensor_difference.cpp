//===- tensor_difference.cpp - How far two tensors are apart --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/tensor_difference.h"

#include "checkpoint/tensor_type.h"
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace distc {
namespace {

template <typename T> T element(const char *bytes) {
  T value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

double fromHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                    : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double fromBfloat16(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  return element<float>(reinterpret_cast<const char *>(&wide));
}

// long double holds every int64 exactly.
bool numberAt(int32_t dtype, const char *bytes, long double &value) {
  switch (dtype) {
  case DRT_F32:
    value = element<float>(bytes);
    return true;
  case DRT_F64:
    value = element<double>(bytes);
    return true;
  case DRT_I32:
    value = element<int32_t>(bytes);
    return true;
  case DRT_U8:
  case DRT_BOOL:
    value = element<uint8_t>(bytes);
    return true;
  case DRT_I16:
    value = element<int16_t>(bytes);
    return true;
  case DRT_I8:
    value = element<int8_t>(bytes);
    return true;
  case DRT_I64:
    value = element<int64_t>(bytes);
    return true;
  case DRT_BF16:
    value = fromBfloat16(element<uint16_t>(bytes));
    return true;
  case DRT_F16:
    value = fromHalf(element<uint16_t>(bytes));
    return true;
  default:
    return false;
  }
}

} // namespace

std::string differenceText(int32_t dtype, const std::vector<char> &a, const std::vector<char> &b) {
  if (a == b)
    return "";
  auto size = size_t(drt::elementSize(dtype));
  size_t count = a.size() / size, differing = 0;
  long double absolute = 0, relative = 0, x = 0, y = 0;
  bool known = true, notANumber = false;
  for (size_t i = 0; i < count; ++i) {
    const char *p = a.data() + i * size, *q = b.data() + i * size;
    if (memcmp(p, q, size) == 0)
      continue;
    ++differing;
    known = numberAt(dtype, p, x) && numberAt(dtype, q, y);
    if (x == y) // zeros of two signs
      continue;
    long double difference = std::abs(x - y);
    if (!std::isfinite(difference)) {
      notANumber = true;
      continue;
    }
    absolute = std::max(absolute, difference);
    relative = std::max(relative, difference / std::max(std::abs(x), std::abs(y)));
  }
  char text[160];
  if (known)
    snprintf(text, sizeof text, "max abs %.6Lg, max rel %.6Lg, %zu of %zu elements%s", absolute, relative, differing,
             count, notANumber ? ", some not finite in one of them" : "");
  else
    snprintf(text, sizeof text, "%zu of %zu elements", differing, count);
  return text;
}

} // namespace distc

//===- reduce.cpp - Sums of the replicas' contributions -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace drt {
namespace {

struct BFloat16 {
  uint16_t bits;
};

float widen(BFloat16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

BFloat16 narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value)
    return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)}; // to nearest, ties to even
}

// The number of contributions is a constant of the inner loop where it is small,
// so that each element is loaded and stored once and the loop is vectorized.
template <class T, int Parts> void sumFixed(T *out, const char *first, int64_t stride, int64_t count, T scale) {
  for (int64_t i = 0; i < count; ++i) {
    T sum = reinterpret_cast<const T *>(first)[i];
    for (int part = 1; part < Parts; ++part)
      sum += reinterpret_cast<const T *>(first + part * stride)[i];
    out[i] = sum * scale;
  }
}

template <class T> void sumAny(T *out, const char *first, int64_t stride, int parts, int64_t count, T scale) {
  constexpr int64_t tile = 512;
  T sum[tile];
  for (int64_t at = 0; at < count; at += tile) {
    const int64_t n = std::min(tile, count - at);
    std::copy_n(reinterpret_cast<const T *>(first) + at, n, sum);
    for (int part = 1; part < parts; ++part) {
      const T *more = reinterpret_cast<const T *>(first + part * stride) + at;
      for (int64_t i = 0; i < n; ++i)
        sum[i] += more[i];
    }
    for (int64_t i = 0; i < n; ++i)
      out[at + i] = sum[i] * scale;
  }
}

template <class T> void sumFloats(void *out, Contributions c, int64_t count, int64_t divisor) {
  T *to = static_cast<T *>(out);
  const T scale = T(1) / static_cast<T>(divisor);
  switch (c.parts) {
  case 1:
    return sumFixed<T, 1>(to, c.first, c.stride, count, scale);
  case 2:
    return sumFixed<T, 2>(to, c.first, c.stride, count, scale);
  case 3:
    return sumFixed<T, 3>(to, c.first, c.stride, count, scale);
  case 4:
    return sumFixed<T, 4>(to, c.first, c.stride, count, scale);
  default:
    return sumAny<T>(to, c.first, c.stride, c.parts, count, scale);
  }
}

template <class T> void sumIntegers(void *out, Contributions c, int64_t count, int64_t divisor) {
  using Wide = std::make_unsigned_t<T>; // wraps around as TensorFlow's integers do
  for (int64_t i = 0; i < count; ++i) {
    Wide sum = 0;
    for (int part = 0; part < c.parts; ++part)
      sum += static_cast<Wide>(reinterpret_cast<const T *>(c.first + part * c.stride)[i]);
    static_cast<T *>(out)[i] = static_cast<T>(static_cast<T>(sum) / static_cast<T>(divisor));
  }
}

template <class T, class Widen, class Narrow>
void sumHalves(void *out, Contributions c, int64_t count, int64_t divisor, Widen widen, Narrow narrow) {
  const float scale = 1.0f / static_cast<float>(divisor);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int part = 0; part < c.parts; ++part)
      sum += widen(reinterpret_cast<const T *>(c.first + part * c.stride)[i]);
    static_cast<T *>(out)[i] = narrow(sum * scale);
  }
}

} // namespace

void reduce(drt_dtype dtype, void *out, Contributions c, int64_t count, int64_t divisor) {
  switch (dtype) {
  case DRT_F32:
    return sumFloats<float>(out, c, count, divisor);
  case DRT_F64:
    return sumFloats<double>(out, c, count, divisor);
  case DRT_I64:
    return sumIntegers<int64_t>(out, c, count, divisor);
  case DRT_I32:
    return sumIntegers<int32_t>(out, c, count, divisor);
  case DRT_I16:
    return sumIntegers<int16_t>(out, c, count, divisor);
  case DRT_I8:
    return sumIntegers<int8_t>(out, c, count, divisor);
  case DRT_U8:
  case DRT_BOOL:
    return sumIntegers<uint8_t>(out, c, count, divisor);
  case DRT_BF16:
    return sumHalves<BFloat16>(out, c, count, divisor, widen, narrow);
  case DRT_F16:
    return sumHalves<_Float16>(
        out, c, count, divisor, [](_Float16 x) { return static_cast<float>(x); },
        [](float x) { return static_cast<_Float16>(x); });
  }
}

} // namespace drt

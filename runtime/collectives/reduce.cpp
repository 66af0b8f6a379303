//===- reduce.cpp - Sums of the replicas' contributions -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

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

/// Where each contribution begins.
using Parts = const char *const *;

// The number of contributions is a constant of the inner loop where it is small,
// so that each element is loaded and stored once and the loop is vectorized.
template <class T, int N> void sumFixed(T *out, Parts parts, int64_t count, T scale) {
  const T *from[N];
  for (int part = 0; part < N; ++part)
    from[part] = reinterpret_cast<const T *>(parts[part]);
  for (int64_t i = 0; i < count; ++i) {
    T sum = from[0][i];
    for (int part = 1; part < N; ++part)
      sum += from[part][i];
    out[i] = sum * scale;
  }
}

template <class T> void sumAny(T *out, Parts parts, int32_t n, int64_t count, T scale) {
  constexpr int64_t tile = 512;
  T sum[tile];
  for (int64_t at = 0; at < count; at += tile) {
    const int64_t size = std::min(tile, count - at);
    std::copy_n(reinterpret_cast<const T *>(parts[0]) + at, size, sum);
    for (int32_t part = 1; part < n; ++part) {
      const T *more = reinterpret_cast<const T *>(parts[part]) + at;
      for (int64_t i = 0; i < size; ++i)
        sum[i] += more[i];
    }
    for (int64_t i = 0; i < size; ++i)
      out[at + i] = sum[i] * scale;
  }
}

template <class T> void sumFloats(void *out, Parts parts, int32_t n, int64_t count, int64_t divisor) {
  T *to = static_cast<T *>(out);
  const T scale = T(1) / static_cast<T>(divisor);
  switch (n) {
  case 1:
    return sumFixed<T, 1>(to, parts, count, scale);
  case 2:
    return sumFixed<T, 2>(to, parts, count, scale);
  case 3:
    return sumFixed<T, 3>(to, parts, count, scale);
  case 4:
    return sumFixed<T, 4>(to, parts, count, scale);
  default:
    return sumAny<T>(to, parts, n, count, scale);
  }
}

template <class T> void sumIntegers(void *out, Parts parts, int32_t n, int64_t count, int64_t divisor) {
  using Wide = std::make_unsigned_t<T>; // wraps around as TensorFlow's integers do
  for (int64_t i = 0; i < count; ++i) {
    Wide sum = 0;
    for (int32_t part = 0; part < n; ++part)
      sum += static_cast<Wide>(reinterpret_cast<const T *>(parts[part])[i]);
    static_cast<T *>(out)[i] = static_cast<T>(static_cast<T>(sum) / static_cast<T>(divisor));
  }
}

template <class T, class Widen, class Narrow>
void sumHalves(void *out, Parts parts, int32_t n, int64_t count, int64_t divisor, Widen widen, Narrow narrow) {
  const float scale = 1.0f / static_cast<float>(divisor);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int32_t part = 0; part < n; ++part)
      sum += widen(reinterpret_cast<const T *>(parts[part])[i]);
    static_cast<T *>(out)[i] = narrow(sum * scale);
  }
}

} // namespace

void reduce(drt_dtype dtype, void *out, Parts parts, int32_t n, int64_t count, int64_t divisor) {
  switch (dtype) {
  case DRT_F32:
    return sumFloats<float>(out, parts, n, count, divisor);
  case DRT_F64:
    return sumFloats<double>(out, parts, n, count, divisor);
  case DRT_I64:
    return sumIntegers<int64_t>(out, parts, n, count, divisor);
  case DRT_I32:
    return sumIntegers<int32_t>(out, parts, n, count, divisor);
  case DRT_I16:
    return sumIntegers<int16_t>(out, parts, n, count, divisor);
  case DRT_I8:
    return sumIntegers<int8_t>(out, parts, n, count, divisor);
  case DRT_U8:
  case DRT_BOOL:
    return sumIntegers<uint8_t>(out, parts, n, count, divisor);
  case DRT_BF16:
    return sumHalves<BFloat16>(out, parts, n, count, divisor, widen, narrow);
  case DRT_F16:
    return sumHalves<_Float16>(
        out, parts, n, count, divisor, [](_Float16 x) { return static_cast<float>(x); },
        [](float x) { return static_cast<_Float16>(x); });
  }
}

void reduce(drt_dtype dtype, void *out, Contributions c, int64_t count, int64_t divisor) {
  constexpr int32_t few = 16;
  const char *some[few];
  std::vector<const char *> many(c.parts > few ? static_cast<size_t>(c.parts) : 0);
  const char **parts = c.parts > few ? many.data() : some;
  for (int32_t i = 0; i < c.parts; ++i)
    parts[i] = c.first + i * c.stride;
  reduce(dtype, out, parts, c.parts, count, divisor);
}

} // namespace drt

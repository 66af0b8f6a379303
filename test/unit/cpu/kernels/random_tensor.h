//===- random_tensor.h - Seeded small data for kernel tests -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef TEST_UNIT_CPU_RANDOM_TENSOR_H
#define TEST_UNIT_CPU_RANDOM_TENSOR_H

#include "cpu/compressor.h"
#include <cstdint>

#include <random>
#include <type_traits>
#include <vector>

/// What the tests say of bfloat16 and float16: the bits, and what they mean.
template <drt_dtype type> struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) { drt::toHalf(type, &value, &bits, 1); }
  explicit operator double() const {
    float value = 0;
    drt::fromHalf(type, &bits, &value, 1);
    return static_cast<double>(value);
  }
};
using BFloat16 = Half<DRT_BF16>;
using Float16 = Half<DRT_F16>;
template <class T> constexpr bool isHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// The same sequence on every machine and library: the engine's words are used as
/// they come, since the standard's distributions differ between libraries.
class Random {
public:
  explicit Random(uint32_t seed) : engine(seed) {}

  int32_t integer(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine() % static_cast<uint32_t>(high - low + 1));
  }

  /// Reals in [-1, 1), integers in [-9, 9].
  template <class T> std::vector<T> tensor(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T &value : values)
      if constexpr (isHalf<T>)
        value = T(static_cast<float>(engine()) / 2147483648.0f - 1.0f);
      else if constexpr (std::is_floating_point_v<T>)
        value = static_cast<T>(engine()) / static_cast<T>(2147483648.0) - T(1);
      else
        value = static_cast<T>(integer(-9, 9));
    return values;
  }

private:
  std::mt19937 engine;
};

#endif // TEST_UNIT_CPU_RANDOM_TENSOR_H

//===- random_tensor.h - Seeded small data for kernel tests -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef TEST_UNIT_CPU_RANDOM_TENSOR_H
#define TEST_UNIT_CPU_RANDOM_TENSOR_H

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

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
      if constexpr (std::is_floating_point_v<T>)
        value = static_cast<T>(engine()) / static_cast<T>(2147483648.0) - T(1);
      else
        value = static_cast<T>(integer(-9, 9));
    return values;
  }

private:
  std::mt19937 engine;
};

#endif // TEST_UNIT_CPU_RANDOM_TENSOR_H

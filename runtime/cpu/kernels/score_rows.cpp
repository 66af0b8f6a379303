//===- score_rows.cpp - Rows of an attention's scores -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/score_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace drt;

namespace {
template <int lanes> struct Row {
  typedef float Floats __attribute__((vector_size(lanes * 4)));
  typedef int32_t Integers __attribute__((vector_size(lanes * 4)));

  [[gnu::always_inline]] static inline Floats load(const float *from) {
    Floats value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  [[gnu::always_inline]] static inline void store(Floats value, float *to) { std::memcpy(to, &value, sizeof value); }

  /// The last numbers of a row, and behind them `rest`.
  [[gnu::always_inline]] static inline Floats loadPart(const float *from, int64_t count, float rest) {
    Floats value = rest - Floats{};
    std::memcpy(&value, from, static_cast<size_t>(count) * sizeof(float));
    return value;
  }

  /// Of numbers up to zero, to an ulp or two: Cody and Waite's reduction, and the polynomial of Cephes' expf. Below the
  /// least normal number it is zero.
  [[gnu::always_inline]] static inline Floats exponential(Floats x) {
    constexpr float log2E = 1.44269504f, ln2High = 0.693359375f, ln2Low = -2.12194440e-4f, least = -87.33654f;
    constexpr float rounding = 12582912.0f; // 1.5 * 2^23: what is added to it is rounded to an integer
    const Floats shifted = x * log2E + rounding, power = shifted - rounding;
    Floats rest = x - power * ln2High;
    rest -= power * ln2Low;
    Floats sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    constexpr int32_t roundingBits = 0x4b400000, bias = 127;
    const Integers scale = (reinterpret<Integers>(shifted) - (roundingBits - bias)) << 23;
    const Floats result = sum * reinterpret<Floats>(scale);
    return x < least ? Floats{} : result;
  }

  [[gnu::always_inline]] static inline float largest(const float *row, int64_t count) {
    constexpr float none = -std::numeric_limits<float>::infinity();
    Floats most = none - Floats{};
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      most = __builtin_elementwise_max(most, load(row + i));
    if (i < count)
      most = __builtin_elementwise_max(most, loadPart(row + i, count - i, none));
    float all = none;
    for (int lane = 0; lane < lanes; ++lane)
      all = std::max(all, most[lane]);
    return all;
  }

  [[gnu::always_inline]] static inline float exponentiate(float *row, int64_t count, float largest) {
    Floats sum = {};
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const Floats power = exponential(load(row + i) - largest);
      store(power, row + i);
      sum += power;
    }
    if (i < count) {
      const Floats power = exponential(loadPart(row + i, count - i, -std::numeric_limits<float>::infinity()) - largest);
      std::memcpy(row + i, &power, static_cast<size_t>(count - i) * sizeof(float));
      sum += power;
    }
    return total(sum);
  }

  [[gnu::always_inline]] static inline void probabilities(float *row, int64_t count, float largest, float factor) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      store(probability(load(row + i), largest, factor), row + i);
    if (i < count) {
      const Floats last = probability(loadPart(row + i, count - i, 0), largest, factor);
      std::memcpy(row + i, &last, static_cast<size_t>(count - i) * sizeof(float));
    }
  }

  [[gnu::always_inline]] static inline float dot(const float *one, const float *other, int64_t count) {
    Floats sum = {};
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      sum += load(one + i) * load(other + i);
    if (i < count)
      sum += loadPart(one + i, count - i, 0) * loadPart(other + i, count - i, 0);
    return total(sum);
  }

private:
  template <class To, class From> [[gnu::always_inline]] static inline To reinterpret(From from) {
    return __builtin_bit_cast(To, from);
  }
  [[gnu::always_inline]] static inline Floats probability(Floats score, float largest, float factor) {
    const Floats below = score - largest;
    return exponential(below > 0 ? Floats{} : below) * factor;
  }
  [[gnu::always_inline]] static inline float total(Floats sum) {
    float all = 0;
    for (int lane = 0; lane < lanes; ++lane)
      all += sum[lane];
    return all;
  }
};

[[gnu::always_inline]] inline void gradientsOf(const float *probabilities, float *gradients, int64_t count, float dot) {
  for (int64_t i = 0; i < count; ++i)
    gradients[i] = probabilities[i] * (gradients[i] - dot);
}
[[gnu::always_inline]] inline void scaleBy(float *row, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}
[[gnu::always_inline]] inline void addTo(float *row, const float *bias, int64_t step, int64_t count) {
  if (step == 0)
    for (int64_t i = 0; i < count; ++i)
      row[i] += *bias;
  else
    for (int64_t i = 0; i < count; ++i)
      row[i] += bias[i];
}

// The same loops, compiled for a machine; see tiles.cpp for why they are not clones.
#define DRT_SCORE_ROWS(NAME, LANES, TARGET)                                                                            \
  TARGET float NAME##Largest(const float *row, int64_t count) { return Row<LANES>::largest(row, count); }              \
  TARGET float NAME##Exponentiate(float *row, int64_t count, float largest) {                                          \
    return Row<LANES>::exponentiate(row, count, largest);                                                              \
  }                                                                                                                    \
  TARGET void NAME##Probabilities(float *row, int64_t count, float largest, float factor) {                            \
    Row<LANES>::probabilities(row, count, largest, factor);                                                            \
  }                                                                                                                    \
  TARGET void NAME##Gradients(const float *probabilities, float *gradients, int64_t count, float dot) {                \
    gradientsOf(probabilities, gradients, count, dot);                                                                 \
  }                                                                                                                    \
  TARGET float NAME##Dot(const float *one, const float *other, int64_t count) {                                        \
    return Row<LANES>::dot(one, other, count);                                                                         \
  }                                                                                                                    \
  TARGET void NAME##Scale(float *row, int64_t count, float factor) { scaleBy(row, count, factor); }                    \
  TARGET void NAME##Add(float *row, const float *bias, int64_t step, int64_t count) { addTo(row, bias, step, count); } \
  constexpr ScoreRows NAME = {NAME##Largest, NAME##Exponentiate, NAME##Probabilities, NAME##Gradients, NAME##Dot,      \
                              NAME##Scale,   NAME##Add};

#ifdef __x86_64__
DRT_SCORE_ROWS(rows512, 16, [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]])
DRT_SCORE_ROWS(rows256, 8, [[gnu::target("avx2,fma")]])
#endif
DRT_SCORE_ROWS(rowsOfAny, 4, )
#undef DRT_SCORE_ROWS
} // namespace

const ScoreRows *const *drt::allScoreRows() {
#ifdef __x86_64__
  static const ScoreRows *const all[] = {&rows512, &rows256, &rowsOfAny, nullptr};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return all;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? all + 1 : all + 2;
#else
  static const ScoreRows *const all[] = {&rowsOfAny, nullptr};
  return all;
#endif
}

const ScoreRows &drt::scoreRows() {
  static const ScoreRows &widest = **allScoreRows();
  return widest;
}

//===- distributions.cpp - Tensors of TensorFlow's random numbers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/distributions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <type_traits>

using namespace drt;

namespace {
constexpr int64_t groupsPerBlock = 64;

// A random mantissa under the exponent of 1 gives [1, 2).
float uniformFloat(uint32_t word) { return std::bit_cast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }
double uniformDouble(uint32_t upper, uint32_t lower) {
  uint64_t mantissa = (uint64_t{upper & 0xfffffu} << 32) | lower;
  return std::bit_cast<double>(mantissa | (uint64_t{1023} << 52)) - 1.0;
}

// Box-Muller, in the precision and with the order of operations of TensorFlow:
// floats multiply by 2 pi in double and round once.
void normalPair(const uint32_t *words, float *out) {
  float radius = std::sqrt(-2.0f * std::log(std::max(uniformFloat(words[0]), 1.0e-7f)));
  float angle = static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(uniformFloat(words[1])));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
void normalPair(const uint32_t *words, double *out) {
  double radius = std::sqrt(-2.0 * std::log(std::max(uniformDouble(words[0], words[1]), 1.0e-7)));
  double angle = 2.0 * std::numbers::pi * uniformDouble(words[2], words[3]);
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

// Outputs that one position of the generator, four words, gives.
template <class T> constexpr int64_t groupSize = 16 / sizeof(T);

// convert(words, out) makes one group of outputs from one position's words.
template <class T, class Convert> void fillGroups(Philox generator, int64_t count, T *out, Convert convert) {
  constexpr int64_t size = groupSize<T>;
  uint32_t words[4 * groupsPerBlock];
  while (count > 0) {
    int64_t groups = std::min((count + size - 1) / size, groupsPerBlock);
    int64_t whole = std::min(count / size, groups);
    generator.fill(words, groups);
    for (int64_t group = 0; group < whole; ++group)
      convert(words + 4 * group, out + size * group);
    if (whole < groups) {
      T last[size];
      convert(words + 4 * whole, last);
      std::copy(last, last + (count - whole * size), out + whole * size);
    }
    out += groups * size;
    count -= groups * size;
  }
}

// Fills `count` elements from number `first` on: fill(generator, count, out) begins with a group's first element, so
// what comes before is drawn and dropped. `positions`: what a group moves the generator on by.
template <class T, class Fill>
void fillFrom(Philox generator, int64_t first, int64_t count, uint64_t positions, T *out, Fill fill) {
  constexpr int64_t size = groupSize<T>;
  generator.skip(static_cast<uint64_t>(first / size) * positions);
  if (int64_t dropped = first % size; dropped != 0 && count > 0) {
    T group[size];
    int64_t taken = std::min(size - dropped, count);
    fill(generator, dropped + taken, group);
    std::copy(group + dropped, group + dropped + taken, out);
    generator.skip(positions);
    out += taken;
    count -= taken;
  }
  fill(generator, count, out);
}

template <class T> void fillUniform(Philox generator, int64_t count, T *out) {
  fillGroups(generator, count, out, [](const uint32_t *words, T *group) {
    if constexpr (std::is_same_v<T, float>) {
      for (int i = 0; i < 4; ++i)
        group[i] = uniformFloat(words[i]);
    } else {
      for (int i = 0; i < 2; ++i)
        group[i] = uniformDouble(words[2 * i], words[2 * i + 1]);
    }
  });
}

template <class T> void fillNormal(Philox generator, int64_t count, T *out) {
  fillGroups(generator, count, out, [](const uint32_t *words, T *group) {
    if constexpr (std::is_same_v<T, float>) {
      normalPair(words, group);
      normalPair(words + 2, group + 2);
    } else {
      normalPair(words, group);
    }
  });
}

// Positions that a group of a truncated distribution may use.
template <class T> constexpr uint64_t truncatedPositions = groupSize<T> * 64;

template <class T> void fillTruncatedNormal(Philox generator, int64_t count, T *out) {
  constexpr int64_t size = groupSize<T>;
  constexpr int wordsPerPair = std::is_same_v<T, float> ? 2 : 4;
  for (int64_t begin = 0; begin < count; begin += size) {
    int64_t wanted = std::min(size, count - begin), taken = 0;
    Philox stream = generator;
    generator.skip(truncatedPositions<T>);
    while (taken < wanted) {
      Philox::Words words = stream.next();
      for (int at = 0; at < 4; at += wordsPerPair) {
        T pair[2];
        normalPair(words.data() + at, pair);
        for (T value : pair)
          if (std::abs(value) < T(2) && taken < wanted)
            out[begin + taken++] = value;
      }
    }
  }
}

template <class T> void fillInt(Philox generator, int64_t count, const void *minval, const void *maxval, T *out) {
  using Unsigned = std::make_unsigned_t<T>;
  const bool all = !minval;
  T low = all ? 0 : *static_cast<const T *>(minval), high = all ? 1 : *static_cast<const T *>(maxval);
  if (low >= high)
    throw std::runtime_error("random integers need minval < maxval, got " + std::to_string(low) +
                             " >= " + std::to_string(high));
  Unsigned range = static_cast<Unsigned>(high) - static_cast<Unsigned>(low);
  fillGroups(generator, count, out, [=](const uint32_t *words, T *group) {
    for (int64_t i = 0; i < groupSize<T>; ++i) {
      Unsigned bits;
      if constexpr (sizeof(T) == 4)
        bits = words[i];
      else
        bits = words[2 * i] | static_cast<Unsigned>(words[2 * i + 1]) << 32;
      group[i] = static_cast<T>(all ? bits : static_cast<Unsigned>(low) + bits % range);
    }
  });
}

template <class T> bool fillReal(Philox generator, const drt_random_desc &desc, int64_t first, void *out) {
  T *elements = static_cast<T *>(out);
  switch (desc.distribution) {
  case DRT_RANDOM_UNIFORM:
    fillFrom(generator, first, desc.count, 1, elements, fillUniform<T>);
    return true;
  case DRT_RANDOM_NORMAL:
    fillFrom(generator, first, desc.count, 1, elements, fillNormal<T>);
    return true;
  case DRT_RANDOM_TRUNCATED_NORMAL:
    fillFrom(generator, first, desc.count, truncatedPositions<T>, elements, fillTruncatedNormal<T>);
    return true;
  default:
    return false;
  }
}

template <class T>
void fillInts(Philox generator, const drt_random_desc &desc, int64_t first, const void *minval, const void *maxval,
              void *out) {
  fillFrom(generator, first, desc.count, 1, static_cast<T *>(out),
           [&](Philox from, int64_t count, T *elements) { fillInt(from, count, minval, maxval, elements); });
}
} // namespace

Philox drt::statelessGenerator(const int64_t *seed) {
  Philox::Words mixed =
      Philox(0x02461e293ec8f720u, static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])).next();
  return Philox(mixed[0] | uint64_t{mixed[1]} << 32, mixed[2] | uint64_t{mixed[3]} << 32);
}

void drt::fillRandom(Philox generator, const drt_random_desc &desc, int64_t first, const void *minval,
                     const void *maxval, void *out) {
  bool integers = desc.distribution == DRT_RANDOM_UNIFORM_INT;
  if (desc.dtype == DRT_F32 && fillReal<float>(generator, desc, first, out))
    return;
  if (desc.dtype == DRT_F64 && fillReal<double>(generator, desc, first, out))
    return;
  if (integers && desc.dtype == DRT_I32)
    return fillInts<int32_t>(generator, desc, first, minval, maxval, out);
  if (integers && desc.dtype == DRT_I64)
    return fillInts<int64_t>(generator, desc, first, minval, maxval, out);
  throw std::runtime_error("random numbers of data type " + std::to_string(desc.dtype) +
                           " are not available for this " +
                           "distribution: use float32 or float64, or int32 or int64 for a range of integers");
}

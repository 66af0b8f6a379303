//===- order.cpp - Which example comes when -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/order.h"

#include <numeric>
#include <utility>

namespace drt {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014): the standard library's shuffle differs from one library to the next.
uint64_t next(uint64_t &state) {
  uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

} // namespace

int64_t ShuffledOrder::at(int64_t position) {
  const int64_t epoch = position / examples_;
  if (epoch != epoch_) {
    epoch_ = epoch;
    permutation_.resize(examples_);
    std::iota(permutation_.begin(), permutation_.end(), 0);
    uint64_t state = seed_ * UINT64_C(0xD1342543DE82EF95) + static_cast<uint64_t>(epoch);
    for (int64_t i = examples_ - 1; i > 0; --i)
      std::swap(permutation_[i], permutation_[next(state) % static_cast<uint64_t>(i + 1)]);
  }
  return permutation_[position % examples_];
}

} // namespace drt

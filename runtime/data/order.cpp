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

uint64_t firstState(uint64_t seed, int64_t epoch) {
  return seed * UINT64_C(0xD1342543DE82EF95) + static_cast<uint64_t>(epoch);
}

} // namespace

std::optional<int64_t> StoredOrder::at(int64_t epoch, int64_t offset) {
  if (epoch != epoch_ || offset < next_) {
    examples_.restart();
    epoch_ = epoch;
    next_ = 0;
  }
  if (next_ < offset)
    examples_.skipTo(offset);
  next_ = offset + 1;
  return examples_.reaches(offset) ? std::optional(offset) : std::nullopt;
}

std::optional<int64_t> ShuffledOrder::at(int64_t epoch, int64_t offset) {
  if (offset >= examples_)
    return std::nullopt;
  if (epoch != epoch_) {
    epoch_ = epoch;
    permutation_.resize(examples_);
    std::iota(permutation_.begin(), permutation_.end(), 0);
    uint64_t state = firstState(seed_, epoch);
    for (int64_t i = examples_ - 1; i > 0; --i)
      std::swap(permutation_[i], permutation_[next(state) % static_cast<uint64_t>(i + 1)]);
  }
  return permutation_[offset];
}

std::optional<int64_t> WindowOrder::at(int64_t epoch, int64_t offset) {
  if (epoch != epoch_ || offset < drawn_) {
    examples_.restart();
    epoch_ = epoch;
    state_ = firstState(seed_, epoch);
    next_ = drawn_ = 0;
    window_.clear();
  }
  while (drawn_ <= offset) {
    for (; static_cast<int64_t>(window_.size()) < size_ && examples_.reaches(next_); ++next_)
      window_.push_back(next_);
    if (window_.empty())
      return std::nullopt;
    const size_t drawn = next(state_) % window_.size();
    last_ = window_[drawn];
    window_[drawn] = window_.back();
    window_.pop_back();
    if (drawn_++ < offset)
      examples_.pass(last_);
  }
  return last_;
}

} // namespace drt

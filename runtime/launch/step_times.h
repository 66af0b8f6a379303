//===- step_times.h - How long steps take ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_STEP_TIMES_H
#define DRT_LAUNCH_STEP_TIMES_H

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace drt {

/// Percentiles of any number of durations in bounded memory: counts of durations that are equal to within 1/64.
class StepTimes {
public:
  void add(int64_t ns) {
    ns = std::max<int64_t>(ns, 0);
    ++counts_[slotOf(ns)];
    least_ = count_ == 0 ? ns : std::min(least_, ns);
    most_ = std::max(most_, ns);
    sum_ += static_cast<double>(ns);
    ++count_;
  }

  int64_t count() const { return count_; }
  int64_t least() const { return least_; }
  int64_t most() const { return most_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  /// Nanoseconds that a share `part` of the durations, 0 to 1, do not exceed, to 1/64.
  int64_t percentile(double part) const {
    const auto rank = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(part * static_cast<double>(count_))) - 1);
    int64_t seen = 0;
    for (size_t slot = 0; slot < counts_.size(); ++slot)
      if (seen += counts_[slot]; seen > rank)
        return std::clamp(valueOf(slot), least_, most_);
    return most_;
  }

private:
  // The first 128 numbers have a slot each; then 64 slots for each power of two.
  static constexpr int bits = 6;
  static size_t slotOf(int64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - bits - 1);
    return (static_cast<size_t>(shift) << bits) + static_cast<size_t>(value >> shift);
  }
  // The middle of a slot.
  static int64_t valueOf(size_t slot) {
    if (slot < size_t(2) << bits)
      return static_cast<int64_t>(slot);
    const int shift = static_cast<int>(slot >> bits) - 1;
    const auto first = static_cast<int64_t>(slot - (static_cast<size_t>(shift) << bits)) << shift;
    return first + (int64_t(1) << shift) / 2;
  }

  std::vector<int64_t> counts_ = std::vector<int64_t>((64 - bits + 1) << bits);
  int64_t count_ = 0, least_ = 0, most_ = 0;
  double sum_ = 0;
};

} // namespace drt

#endif // DRT_LAUNCH_STEP_TIMES_H

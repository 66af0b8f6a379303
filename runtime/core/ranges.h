//===- ranges.h - Which elements belong to which replica ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_RANGES_H
#define DRT_CORE_RANGES_H

#include <algorithm>
#include <cstdint>

namespace drt {

struct Range {
  int64_t begin = 0;
  int64_t end = 0; // one past the last
  int64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

/// Two replicas never write the same cache line of a 4-byte variable when ranges
/// begin at multiples of this many elements.
inline constexpr int64_t rangeGrain = 64;

/// The part `index` of `parts` of [0, count): parts are in order, cover all of it,
/// begin at multiples of `grain`, and differ by at most one grain. Where there is
/// less than a grain a part the first parts take it and the others are empty.
inline Range rangeOf(int64_t count, int64_t parts, int64_t index, int64_t grain = rangeGrain) {
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t each = grains / parts, more = grains % parts;
  const int64_t first = index * each + std::min(index, more);
  const int64_t last = first + each + (index < more ? 1 : 0);
  return {std::min(first * grain, count), std::min(last * grain, count)};
}

} // namespace drt

#endif // DRT_CORE_RANGES_H

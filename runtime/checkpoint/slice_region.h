//===- slice_region.h - Which bytes of one box lie where in another -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_SLICE_REGION_H
#define DRT_CHECKPOINT_SLICE_REGION_H

#include <cstdint>
#include <string>
#include <vector>

namespace drt {

// A part of a tensor: [begin, begin + extent) along each axis, stored dense.
struct Region {
  std::vector<int64_t> begin, extent;

  bool operator==(const Region &) const = default;
};

// Elements in both; 0 where they do not meet.
int64_t commonElements(const Region &a, const Region &b);

// "" or what is wrong with a region of a tensor of this shape.
std::string regionError(const std::vector<int64_t> &shape, const Region &region);

// "[0:392,0:512]"
std::string regionText(const Region &region);

// Walks what two regions have in common, in runs that are contiguous in both, in
// the order of `source`.
class RegionRuns {
public:
  RegionRuns(const Region &source, const Region &destination);

  // The next run: offsets and length in elements. False at the end.
  bool next(int64_t &sourceOffset, int64_t &destinationOffset, int64_t &count);

private:
  std::vector<int64_t> extent, position; // of the axes outside a run
  std::vector<int64_t> sourceStride, destinationStride;
  int64_t sourceStart = 0, destinationStart = 0, run = 1;
  bool done = false;
};

} // namespace drt
#endif // DRT_CHECKPOINT_SLICE_REGION_H

//===- slice_region.cpp - Which bytes of one box lie where in another -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/slice_region.h"

#include "checkpoint/tensor_type.h"

#include <algorithm>

namespace drt {
namespace {

Region intersect(const Region &a, const Region &b) {
  Region common;
  for (size_t axis = 0; axis < a.begin.size(); ++axis) {
    int64_t begin = std::max(a.begin[axis], b.begin[axis]);
    int64_t end = std::min(a.begin[axis] + a.extent[axis], b.begin[axis] + b.extent[axis]);
    common.begin.push_back(begin);
    common.extent.push_back(std::max<int64_t>(0, end - begin));
  }
  return common;
}

std::vector<int64_t> denseStrides(const std::vector<int64_t> &extent) {
  std::vector<int64_t> strides(extent.size(), 1);
  for (size_t axis = extent.size(); axis > 1; --axis)
    strides[axis - 2] = strides[axis - 1] * extent[axis - 1];
  return strides;
}

} // namespace

int64_t commonElements(const Region &a, const Region &b) { return shapeElements(intersect(a, b).extent); }

std::string regionError(const std::vector<int64_t> &shape, const Region &region) {
  if (shapeElements(shape) < 0)
    return "shape " + shapeText(shape) + " is not a tensor's";
  if (region.begin.size() != shape.size() || region.extent.size() != shape.size())
    return "slice has rank " + std::to_string(region.begin.size()) + ", tensor " + shapeText(shape) + " has rank " +
           std::to_string(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (region.begin[axis] < 0 || region.extent[axis] < 0 || region.begin[axis] > shape[axis] ||
        region.extent[axis] > shape[axis] - region.begin[axis])
      return "slice " + regionText(region) + " leaves the tensor's shape " + shapeText(shape);
  return "";
}

std::string regionText(const Region &region) {
  std::string text = "[";
  for (size_t axis = 0; axis < region.begin.size(); ++axis) {
    // Regions of a damaged index come here, too: no overflow.
    auto end = int64_t(uint64_t(region.begin[axis]) + uint64_t(region.extent[axis]));
    text += (axis ? "," : "") + std::to_string(region.begin[axis]) + ":" + std::to_string(end);
  }
  return text + "]";
}

RegionRuns::RegionRuns(const Region &source, const Region &destination) {
  Region common = intersect(source, destination);
  done = shapeElements(common.extent) == 0;
  sourceStride = denseStrides(source.extent);
  destinationStride = denseStrides(destination.extent);
  for (size_t axis = 0; axis < common.begin.size(); ++axis) {
    sourceStart += (common.begin[axis] - source.begin[axis]) * sourceStride[axis];
    destinationStart += (common.begin[axis] - destination.begin[axis]) * destinationStride[axis];
  }
  // A run goes over the innermost axis, and on over the next one out for as long
  // as all of the inner one is taken from both.
  size_t outer = common.extent.size();
  while (outer > 0) {
    --outer;
    run *= common.extent[outer];
    if (common.extent[outer] != source.extent[outer] || common.extent[outer] != destination.extent[outer])
      break;
  }
  extent.assign(common.extent.begin(), common.extent.begin() + int64_t(outer));
  position.assign(outer, 0);
}

bool RegionRuns::next(int64_t &sourceOffset, int64_t &destinationOffset, int64_t &count) {
  if (done)
    return false;
  sourceOffset = sourceStart;
  destinationOffset = destinationStart;
  count = run;
  for (size_t axis = 0; axis < position.size(); ++axis) {
    sourceOffset += position[axis] * sourceStride[axis];
    destinationOffset += position[axis] * destinationStride[axis];
  }
  size_t axis = position.size();
  while (axis > 0 && ++position[axis - 1] == extent[axis - 1])
    position[--axis] = 0;
  done = axis == 0;
  return true;
}

} // namespace drt

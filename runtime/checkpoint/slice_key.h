//===- slice_key.h - The key of a tensor's slice in the index -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_SLICE_KEY_H
#define DRT_CHECKPOINT_SLICE_KEY_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

// A range along one axis, as the index holds it. length -1: all of the axis.
struct SliceExtent {
  int64_t start = 0;
  int64_t length = -1;
};

// What TensorFlow's checkpoint::EncodeTensorNameSlice makes: 0, the name, the
// rank, start and length of each axis, in an encoding whose byte order is the
// order of the values ("ordered code").
std::string encodeSliceKey(std::string_view name, const std::vector<SliceExtent> &extents);

} // namespace drt
#endif // DRT_CHECKPOINT_SLICE_KEY_H

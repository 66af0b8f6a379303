//===- device_memory.h - What a replica takes of a device's memory --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_DEVICE_MEMORY_H
#define DRT_CORE_DEVICE_MEMORY_H

#include "drt/drt.h"

#include <cstdint>
#include <vector>

namespace drt {

/// Everything in a device's memory begins at multiples of this, in bytes.
inline constexpr int64_t deviceAlignment = 256;

/// Sets of feed buffers: while one is computed from, the next step's rows go into the other.
inline constexpr int feedSets = 2;

/// Bytes, as far as the program says: the libraries choose their workspace on the device.
struct DeviceMemoryPlan {
  int64_t arena = 0, variables = 0, randomStates = 0;
  int64_t feeds = 0; // of one set: the entry with the largest feeds
};
DeviceMemoryPlan deviceMemoryPlan(const drt_program &program);

/// The front of a replica's block of variables, which is the same in every replica; behind it lie shares.
int64_t commonVariableBytes(const drt_program &program);

/// Where each of several blocks lies when they follow each other, aligned; the last number is the bytes of all.
std::vector<int64_t> feedOffsets(const drt_entry &entry);
std::vector<int64_t> fetchOffsets(const drt_entry &entry);

/// Of a replica's share.
int64_t typeBytes(const drt_type &type);

} // namespace drt

#endif // DRT_CORE_DEVICE_MEMORY_H

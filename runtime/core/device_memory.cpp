//===- device_memory.cpp - What a replica takes of a device's memory ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/device_memory.h"
#include "core/dtype.h"
#include "core/memory.h"

#include <algorithm>

namespace drt {
namespace {

template <class Piece> std::vector<int64_t> offsetsOf(const Piece *pieces, int32_t count) {
  std::vector<int64_t> offsets = {0};
  for (int32_t i = 0; i < count; ++i)
    offsets.push_back(offsets.back() + roundUp(typeBytes(pieces[i].type), deviceAlignment));
  return offsets;
}

} // namespace

int64_t typeBytes(const drt_type &type) { return elementCount(type) * dtypeSize(type.dtype); }

std::vector<int64_t> feedOffsets(const drt_entry &entry) { return offsetsOf(entry.feeds, entry.num_feeds); }
std::vector<int64_t> fetchOffsets(const drt_entry &entry) { return offsetsOf(entry.fetches, entry.num_fetches); }

DeviceMemoryPlan deviceMemoryPlan(const drt_program &program) {
  DeviceMemoryPlan plan;
  plan.arena = program.arena_bytes;
  plan.variables = program.device ? program.device->variable_bytes : 0;
  plan.randomStates = program.num_rng_states * deviceAlignment;
  for (int32_t i = 0; i < program.num_entries; ++i)
    plan.feeds = std::max(plan.feeds, feedOffsets(program.entries[i]).back());
  return plan;
}

int64_t commonVariableBytes(const drt_program &program) {
  int64_t bytes = program.device->variable_bytes;
  for (int32_t i = 0; i < program.num_variables; ++i)
    if (program.variables[i].shares > 0)
      bytes = std::min(bytes, program.variables[i].offset);
  return bytes;
}

} // namespace drt

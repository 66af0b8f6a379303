//===- joint_memory.cpp - What the replicas of a joint plan have in common ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/joint_memory.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

#include <algorithm>
#include <new>

namespace drt {
namespace {

constexpr int64_t cacheLine = 64, page = 4096;

/// Places one behind the other.
class Places {
public:
  int64_t take(int64_t bytes, int64_t alignment) {
    const int64_t at = roundUp(end_, alignment);
    end_ = at + bytes;
    return at;
  }
  int64_t end() const { return end_; }

private:
  int64_t end_ = 0;
};

} // namespace

JointMemory::JointMemory(const drt_program &program, Communicator &communicator, int64_t variableBytes,
                         int64_t arenaStride) {
  const int32_t replicas = program.num_replicas;
  int32_t buckets = 0;
  std::vector<int64_t> shares; // of each feed the largest: entries number theirs on their own
  for (int32_t i = 0; i < program.num_entries; ++i) {
    const drt_entry &entry = program.entries[i];
    firstBucket_.push_back(buckets);
    buckets += entry.num_buckets;
    shares.resize(std::max<size_t>(shares.size(), static_cast<size_t>(entry.num_feeds)));
    for (int32_t f = 0; f < entry.num_feeds; ++f) {
      const drt_type &type = entry.feeds[f].type;
      shares[static_cast<size_t>(f)] =
          std::max(shares[static_cast<size_t>(f)], elementCount(type) * dtypeSize(type.dtype));
    }
  }
  Places places;
  const int64_t header = places.take(sizeof(Header), cacheLine);
  const int64_t counters = places.take(static_cast<int64_t>(sizeof(Counter)) * buckets, alignof(Counter));
  const int64_t waits = places.take(static_cast<int64_t>(sizeof(*waits_)) * replicas, cacheLine);
  std::vector<int64_t> feeds;
  for (const int64_t bytes : shares)
    feeds.push_back(places.take(bytes * replicas, cacheLine));
  const int64_t variables = places.take(variableBytes, page);
  const int64_t arenas = places.take(arenaStride * replicas, page);

  communicator.describe(0, "the replicas' memory");
  memory_ = communicator.common_memory(places.end());
  if (!memory_.data)
    throw Error("the tasks of a joint plan have no memory in common: an internal error of the runtime", 70);
  char *const data = memory_.data;
  if (communicator.rank() == 0) {
    new (data + header) Header(static_cast<uint32_t>(replicas));
    for (int32_t i = 0; i < buckets; ++i)
      new (data + counters + i * static_cast<int64_t>(sizeof(Counter))) Counter(Counter::Between::Processes);
    for (int32_t i = 0; i < replicas; ++i)
      new (data + waits + i * static_cast<int64_t>(sizeof(*waits_))) std::atomic<uint32_t>(0);
  }
  communicator.barrier();
  header_ = std::launder(reinterpret_cast<Header *>(data + header));
  buckets_ = std::launder(reinterpret_cast<Counter *>(data + counters));
  waits_ = std::launder(reinterpret_cast<std::atomic<uint32_t> *>(data + waits));
  for (const int64_t feed : feeds)
    feeds_.push_back(data + feed);
  variables_ = data + variables;
  arenas_ = data + arenas;
}

} // namespace drt

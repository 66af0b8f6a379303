//===- shared_memory_channel.h - Two tasks of one host ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A channel in memory that both ends have mapped: a lane each way. A message is a list of parts: a large piece of
// shared memory is said by where it lies, and read there; anything else is copied into the lane. A lane is filled when
// the other end has taken all of what was in it.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_SHARED_MEMORY_CHANNEL_H
#define DRT_COLLECTIVES_SHARED_MEMORY_CHANNEL_H

#include "collectives/channel.h"

#include <atomic>
#include <functional>
#include <memory>

namespace drt {

/// Shared memory as this process sees it.
struct SharedBlock {
  char *data;
  int64_t offset, bytes; // in the file that the tasks share
};

/// Of the memory for one channel, which one of its ends prepares before either uses it.
int64_t shared_memory_channel_bytes();
void prepare_shared_memory_channel(char *memory);

struct SharedMemoryChannelOptions {
  char *memory = nullptr;
  bool first = false;               // one end is, the other is not
  std::vector<SharedBlock> blocks;  // that the other end knows too
  const std::atomic<bool> *aborted; // both outlive the channel
  std::function<void()> throw_if_aborted;
};
std::unique_ptr<Channel> make_shared_memory_channel(SharedMemoryChannelOptions options);

} // namespace drt

#endif // DRT_COLLECTIVES_SHARED_MEMORY_CHANNEL_H

//===- scratch.h - Memory that calls have while they run -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Calls of one core follow each other, and what they pack, reorder or multiply on the way is gone when they return: so
// the buffers of all call sites lie over each other, in as much memory as the largest site needs, which stays in the
// caches. (A buffer for each site would be 270 MB of a ResNet-50 on two replicas, more than a quarter of its arenas.)
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_SCRATCH_H
#define DRT_CPU_KERNELS_SCRATCH_H

#include "core/memory.h"

#include <cstddef>

namespace drt {

/// The memory of one core's calls. Outlives the buffers.
class Scratch {
public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// The buffers that follow are another call site's.
  void begin() { end_ = 0; }

  /// Where `size` bytes of the site lie, on a cache line. All buffers may move: to be called while no call runs.
  /// Throws drt::Error.
  size_t take(size_t size) {
    const size_t offset = end_;
    // Not a multiple of a page apart: buffers are walked side by side, and such lines share the cache's sets.
    end_ += static_cast<size_t>(roundUp(static_cast<int64_t>(size), cacheLine) + apart);
    if (end_ > bytes()) {
      memory_ = Memory(); // before there is more
      memory_ = Memory(static_cast<int64_t>(end_));
    }
    return offset;
  }

  char *data() const { return memory_.data(); }
  size_t bytes() const { return static_cast<size_t>(memory_.bytes()); }

private:
  static constexpr int64_t cacheLine = 64, apart = 17 * cacheLine;

  Memory memory_;
  size_t end_ = 0; // of what the site has so far
};

/// A call site's bytes of the scratch: uninitialized, its own while a call of it runs.
class Buffer {
public:
  Buffer() = default;
  Buffer(Scratch &scratch, size_t bytes)
      : scratch_(bytes ? &scratch : nullptr), offset_(bytes ? scratch.take(bytes) : 0) {}

  /// Null where it has no bytes.
  void *data() const { return scratch_ ? scratch_->data() + offset_ : nullptr; }
  template <class T> T *as() const { return static_cast<T *>(data()); }

private:
  const Scratch *scratch_ = nullptr;
  size_t offset_ = 0;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_SCRATCH_H

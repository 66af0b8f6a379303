//===- buffer.h - Memory that starts on a cache line -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_BUFFER_H
#define DRT_CPU_KERNELS_BUFFER_H

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace drt {

/// Uninitialized bytes, 64-byte aligned, owned. Throws std::bad_alloc.
class Buffer {
public:
  Buffer() = default;
  explicit Buffer(size_t bytes) : memory(bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr) {
    if (bytes && !memory)
      throw std::bad_alloc();
  }

  void *data() const { return memory.get(); }
  template <class T> T *as() const { return static_cast<T *>(memory.get()); }

private:
  struct Free {
    void operator()(void *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<void, Free> memory;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_BUFFER_H

//===- memory.h - Large, aligned, zeroed memory ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_MEMORY_H
#define DRT_CORE_MEMORY_H

#include <cstdint>
#include <optional>
#include <utility>

namespace drt {

constexpr int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// A block of zeroed memory, page aligned, backed by huge pages where the system
/// gives them; freed with the object. Not for small things. Throws drt::Error
/// where there is not that much.
class Memory {
public:
  Memory() = default;
  explicit Memory(int64_t bytes);
  ~Memory();
  Memory(Memory &&other) noexcept { *this = std::move(other); }
  Memory &operator=(Memory &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  char *data() const { return data_; }
  int64_t bytes() const { return bytes_; }

private:
  char *data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Bytes of the process that are in memory now, as the kernel counts them; 0 where it does not say.
int64_t residentBytes();

/// Bytes that the process could take more without others being driven out: what the machine has left, and its control
/// group (version 2) where that has less. Nothing where the kernel does not say.
std::optional<int64_t> availableBytes();

} // namespace drt

#endif // DRT_CORE_MEMORY_H

//===- memory.cpp - Device memory and pinned memory of the emulator -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/memory.h"

#include "cuda/emulator/failure.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

using namespace drt::cuda::emulated;

namespace {
constexpr size_t alignment = 256;

size_t roundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

std::string hex(CUdeviceptr address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

char *mapNothing(size_t bytes) {
  void *mapped = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(mapped != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY, "mmap failed");
  return static_cast<char *>(mapped);
}
} // namespace

Memory::~Memory() {
  for (Blocks *blocks : {&device_, &pinned_})
    for (auto &[address, block] : *blocks)
      munmap(block.mapped, block.mappedBytes);
}

Memory::Blocks::const_iterator Memory::find(const Blocks &blocks, CUdeviceptr address) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return blocks.end();
  --after;
  return address - after->first < after->second.bytes ? after : blocks.end();
}

// Addresses, then the bytes, then a page that nobody may touch. Both end where a page ends, or up to 255 bytes before.
CUdeviceptr Memory::allocate(int device, size_t bytes, size_t most) {
  require(bytes > 0, CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  require(used(device) + bytes <= most, CUDA_ERROR_OUT_OF_MEMORY, "the emulated device has no more memory");
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), half = roundUp(bytes, page);
  size_t first = half - roundUp(bytes, alignment);
  char *mapped = mapNothing(2 * half + page);
  if (mprotect(mapped + half, half, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, 2 * half + page);
    throw Failure(CUDA_ERROR_OUT_OF_MEMORY, "mprotect failed");
  }
  std::memset(mapped + half, 0xff, half);
  std::lock_guard lock(mutex_);
  auto address = reinterpret_cast<CUdeviceptr>(mapped + first);
  device_[address] = {bytes, device, mapped, 2 * half + page, static_cast<ptrdiff_t>(half)};
  return address;
}

int Memory::owner(CUdeviceptr address) const {
  std::lock_guard lock(mutex_);
  auto found = device_.find(address);
  require(found != device_.end(), CUDA_ERROR_INVALID_VALUE, "no allocation begins at this address");
  return found->second.device;
}

void Memory::free(CUdeviceptr address) {
  std::lock_guard lock(mutex_);
  auto found = device_.find(address);
  require(found != device_.end(), CUDA_ERROR_INVALID_VALUE, "no allocation begins at this address");
  munmap(found->second.mapped, found->second.mappedBytes);
  device_.erase(found);
}

size_t Memory::used(int device) const {
  std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (auto &[address, block] : device_)
    sum += block.device == device ? block.bytes : 0;
  return sum;
}

char *Memory::resolve(int device, CUdeviceptr address, size_t bytes, size_t aligned) const {
  std::lock_guard lock(mutex_);
  auto found = find(device_, address);
  std::string range = std::to_string(bytes) + " bytes at " + hex(address);
  if (found == device_.end())
    throw Failure(CUDA_ERROR_ILLEGAL_ADDRESS, range + " are not in the memory of a device");
  const Block &block = found->second;
  if (block.device != device)
    throw Failure(CUDA_ERROR_ILLEGAL_ADDRESS, range + " are device " + std::to_string(block.device) +
                                                  "'s, and device " + std::to_string(device) + " uses them");
  if (bytes > block.bytes - (address - found->first))
    throw Failure(CUDA_ERROR_ILLEGAL_ADDRESS, range + " go beyond an allocation of " + std::to_string(block.bytes) +
                                                  " bytes by " +
                                                  std::to_string(address - found->first + bytes - block.bytes));
  if (address % aligned != 0)
    throw Failure(CUDA_ERROR_MISALIGNED_ADDRESS, range + " are not aligned to " + std::to_string(aligned));
  return reinterpret_cast<char *>(address) + block.distance;
}

void *Memory::allocatePinned(size_t bytes) {
  require(bytes > 0, CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = roundUp(bytes, page);
  char *mapped = mapNothing(size + page);
  if (mprotect(mapped, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, size + page);
    throw Failure(CUDA_ERROR_OUT_OF_MEMORY, "mprotect failed");
  }
  std::memset(mapped, 0xff, size);
  std::lock_guard lock(mutex_);
  pinned_[reinterpret_cast<CUdeviceptr>(mapped)] = {bytes, -1, mapped, size + page, 0};
  return mapped;
}

void Memory::freePinned(void *address) {
  std::lock_guard lock(mutex_);
  auto found = pinned_.find(reinterpret_cast<CUdeviceptr>(address));
  require(found != pinned_.end(), CUDA_ERROR_INVALID_VALUE, "no pinned allocation begins at this address");
  munmap(found->second.mapped, found->second.mappedBytes);
  pinned_.erase(found);
}

bool Memory::isPinned(const void *host, size_t bytes) const {
  std::lock_guard lock(mutex_);
  auto address = reinterpret_cast<CUdeviceptr>(host);
  auto found = find(pinned_, address);
  if (found == pinned_.end()) {
    require(find(device_, address) == device_.end(), CUDA_ERROR_INVALID_VALUE,
            "a device address where the host's is asked for");
    return false;
  }
  require(bytes <= found->second.bytes - (address - found->first), CUDA_ERROR_INVALID_VALUE,
          "a copy goes beyond its pinned allocation");
  return true;
}

//===- memory.h - Device memory and pinned memory of the emulator ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A device address is an address of this process that nobody can read or write: the bytes lie at a fixed distance
// behind it, and only copies, kernels and libraries of the emulator are told where (resolve). So host code that
// dereferences a device address faults, and an argument of a kernel that is no device address is refused. What lies
// behind an allocation cannot be touched either. New memory is full of 0xff: NaN as a float, -1 as an integer.
//
// Any thread.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_MEMORY_H
#define DRT_CUDA_EMULATOR_MEMORY_H

#include <cuda.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace drt::cuda::emulated {

class Memory {
public:
  ~Memory();

  /// 256-byte aligned. Throws CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE for 0 bytes.
  CUdeviceptr allocate(int device, size_t bytes, size_t most);
  /// Which device the allocation at `address` belongs to; throws CUDA_ERROR_INVALID_VALUE where none begins there.
  int owner(CUdeviceptr address) const;
  void free(CUdeviceptr address);
  size_t used(int device) const;

  /// Where the bytes [address, address + bytes) lie. Throws CUDA_ERROR_ILLEGAL_ADDRESS unless one allocation of the
  /// device has them all, CUDA_ERROR_MISALIGNED_ADDRESS unless `address` is a multiple of `alignment`.
  char *resolve(int device, CUdeviceptr address, size_t bytes, size_t alignment = 1) const;
  template <class T> T *resolve(int device, const void *address, size_t count) const {
    return reinterpret_cast<T *>(
        resolve(device, reinterpret_cast<CUdeviceptr>(address), count * sizeof(T), alignof(T)));
  }

  void *allocatePinned(size_t bytes);
  void freePinned(void *address);
  /// Whether [address, address + bytes) is pinned memory. Throws CUDA_ERROR_INVALID_VALUE where only some of it is.
  bool isPinned(const void *address, size_t bytes) const;

private:
  struct Block {
    size_t bytes;
    int device;
    void *mapped;
    size_t mappedBytes;
    ptrdiff_t distance; // from the address to the bytes
  };
  using Blocks = std::map<CUdeviceptr, Block>;
  Blocks::const_iterator find(const Blocks &blocks, CUdeviceptr address) const;

  mutable std::mutex mutex_;
  Blocks device_;
  Blocks pinned_;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_MEMORY_H

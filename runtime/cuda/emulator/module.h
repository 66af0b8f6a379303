//===- module.h - Images and kernels of the emulator ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_MODULE_H
#define DRT_CUDA_EMULATOR_MODULE_H

#include "cuda/emulator/block.h"
#include "cuda/emulator/memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace drt::cuda::emulated {

class MemoryFile;
class Module;

struct Kernel {
  std::string name;
  KernelFunction function;
  int32_t parameters;
  std::shared_ptr<Module> module; // keeps the image

  /// The arguments as they are now: cuLaunchKernel reads them before it returns.
  std::vector<void *> arguments(void **parameters) const;

  /// All blocks, in an order that `seed` makes. Throws where an argument is no memory of the device.
  void run(const Memory &memory, int device, const LaunchShape &shape, const std::vector<void *> &arguments,
           uint64_t seed) const;
};

/// An image loaded for one device: a shared object of its own, with its own static memory.
class Module : public std::enable_shared_from_this<Module> {
public:
  /// Throws CUDA_ERROR_NO_BINARY_FOR_GPU where the image is no shared object of this machine.
  Module(const void *image, int device);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  int device() const { return device_; }
  /// Throws CUDA_ERROR_NOT_FOUND.
  std::shared_ptr<Kernel> find(const char *name);

private:
  int device_;
  /// Open as long as the library is: the loader takes two files of one name, a descriptor's number, for one library.
  std::unique_ptr<MemoryFile> file_;
  void *library_ = nullptr;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_MODULE_H

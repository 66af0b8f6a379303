//===- kernels.h - A program's kernels on a device ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_KERNELS_H
#define DRT_CUDA_KERNELS_H

#include "cuda/handles.h"
#include "drt/drt.h"

#include <vector>

namespace drt::cuda {

/// The images that run on a device of compute capability major.minor, the best one first: cubins of the same major and
/// no newer minor version, the newest first, then PTX that is no newer, which the driver compiles. Code for a chip's
/// own features ("sm_90a") runs on that chip alone. An image for the emulator runs anywhere there. Throws drt::Error
/// that says which chips the program was compiled for.
std::vector<const drt_image *> imagesFor(const drt_device_code &code, int major, int minor);

/// In the context that is current when it is made.
class Kernels {
public:
  Kernels() = default;
  /// Of the first of the images that the driver takes: it may be older than the compiler that made a cubin, and still
  /// compile PTX. Throws drt::Error with what it says of each.
  Kernels(const drt_device_code &code, const std::vector<const drt_image *> &images);

  /// Enqueues a launch. `arguments`: as many addresses as the kernel has arguments.
  void launch(int32_t kernel, void *const *arguments, CUstream stream);

private:
  const drt_device_code *code_ = nullptr;
  Module module_;
  std::vector<CUfunction> functions_;
  std::vector<void *> parameters_; // of the launch that is made
};

} // namespace drt::cuda

#endif // DRT_CUDA_KERNELS_H

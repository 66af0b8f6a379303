//===- kernels.cpp - A program's kernels on a device ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/kernels.h"
#include "core/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace drt::cuda {
namespace {

// A chip's number: 10 * major + minor, as in "sm_90"; -1 where the text does not begin so.
int chipOf(const char *arch, const char *prefix) {
  const size_t length = std::strlen(prefix);
  return std::strncmp(arch, prefix, length) == 0 ? std::atoi(arch + length) : -1;
}

std::string listed(const drt_device_code &code) {
  std::string text;
  for (int32_t i = 0; i < code.num_images; ++i)
    text += (i ? ", " : "") + std::string(code.images[i].arch);
  return text.empty() ? "none" : text;
}

} // namespace

const drt_image &imageFor(const drt_device_code &code, int major, int minor) {
  const int own = 10 * major + minor;
  const drt_image *cubin = nullptr, *ptx = nullptr;
  int cubinChip = -1, ptxChip = -1;
  for (int32_t i = 0; i < code.num_images; ++i) {
    const drt_image &image = code.images[i];
    if (std::strcmp(image.arch, "host") == 0)
      return image;
    const int chip = chipOf(image.arch, "sm_"), virtualChip = chipOf(image.arch, "compute_");
    if (chip / 10 == major && chip <= own && chip > cubinChip) {
      cubin = &image;
      cubinChip = chip;
    }
    if (virtualChip <= own && virtualChip > ptxChip) {
      ptx = &image;
      ptxChip = virtualChip;
    }
  }
  if (cubin || ptx)
    return cubin ? *cubin : *ptx;
  const std::string chip = "sm_" + std::to_string(own);
  throw Error("the program was compiled for " + listed(code) + ", which do not run on a device of compute capability " +
              std::to_string(major) + "." + std::to_string(minor) + "; compile it with --target=cuda:" + chip);
}

Kernels::Kernels(const drt_device_code &code, const drt_image &image) : code_(&code) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult status = driver().cuModuleLoadDataEx(&module, image.data, 2, options, values);
  if (status != CUDA_SUCCESS) {
    try {
      check(status, "cuModuleLoadDataEx");
    } catch (const Error &error) {
      throw Error(std::string("the driver does not take the program's kernels for ") + image.arch + ": " +
                  error.what() + (*log ? std::string("\n") + log : std::string()));
    }
  }
  module_ = Module(module);
  int32_t most = 0;
  for (int32_t i = 0; i < code.num_kernels; ++i) {
    CUfunction function = nullptr;
    check(driver().cuModuleGetFunction(&function, module, code.kernels[i].name), code.kernels[i].name);
    functions_.push_back(function);
    most = std::max(most, code.kernels[i].num_arguments);
  }
  parameters_.resize(static_cast<size_t>(most));
}

void Kernels::launch(int32_t kernel, void *const *arguments, CUstream stream) {
  const drt_kernel &plan = code_->kernels[kernel];
  // The driver copies each argument from where these point to.
  for (int32_t i = 0; i < plan.num_arguments; ++i)
    parameters_[static_cast<size_t>(i)] = const_cast<void **>(&arguments[i]);
  const auto extent = [](const int32_t(&extents)[3], int axis) { return static_cast<unsigned>(extents[axis]); };
  check(driver().cuLaunchKernel(functions_[static_cast<size_t>(kernel)], extent(plan.grid, 0), extent(plan.grid, 1),
                                extent(plan.grid, 2), extent(plan.block, 0), extent(plan.block, 1),
                                extent(plan.block, 2), 0, stream, parameters_.data(), nullptr),
        "cuLaunchKernel");
}

} // namespace drt::cuda

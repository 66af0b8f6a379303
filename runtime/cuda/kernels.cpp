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
#include <tuple>

namespace drt::cuda {
namespace {

// What an image's name says: "sm_90", "compute_90", "sm_90a".
struct Arch {
  int chip = -1; // 10 * major + minor
  bool isPtx = false;
  bool isOwn = false; // for that chip alone

  explicit Arch(const char *name) {
    for (const char *prefix : {"sm_", "compute_"}) {
      const size_t length = std::strlen(prefix);
      if (std::strncmp(name, prefix, length) != 0)
        continue;
      char *end = nullptr;
      chip = static_cast<int>(std::strtol(name + length, &end, 10));
      isPtx = prefix[0] == 'c';
      isOwn = *end != 0;
    }
  }

  bool runsOn(int major, int own) const {
    if (chip < 0 || chip > own || (isOwn && chip != own))
      return false;
    return isPtx || chip / 10 == major;
  }
};

std::string listed(const drt_device_code &code) {
  std::string text;
  for (int32_t i = 0; i < code.num_images; ++i)
    text += (i ? ", " : "") + std::string(code.images[i].arch);
  return text.empty() ? "none" : text;
}

} // namespace

std::vector<const drt_image *> imagesFor(const drt_device_code &code, int major, int minor) {
  const int own = 10 * major + minor;
  std::vector<const drt_image *> found;
  for (int32_t i = 0; i < code.num_images; ++i)
    if (std::strcmp(code.images[i].arch, "host") == 0 || Arch(code.images[i].arch).runsOn(major, own))
      found.push_back(&code.images[i]);
  std::stable_sort(found.begin(), found.end(), [](const drt_image *x, const drt_image *y) {
    const Arch first(x->arch), second(y->arch);
    return std::tuple(first.isPtx, -first.chip, !first.isOwn) < std::tuple(second.isPtx, -second.chip, !second.isOwn);
  });
  if (!found.empty())
    return found;
  const std::string chip = "sm_" + std::to_string(own);
  throw Error("the program was compiled for " + listed(code) + ", which do not run on a device of compute capability " +
              std::to_string(major) + "." + std::to_string(minor) + "; compile it with --target=cuda:" + chip);
}

static Module load(const drt_image &image) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult status = driver().cuModuleLoadDataEx(&module, image.data, 2, options, values);
  try {
    check(status, "cuModuleLoadDataEx");
  } catch (const Error &error) {
    throw Error(std::string("the driver does not take the program's kernels for ") + image.arch + ": " + error.what() +
                (*log ? std::string("\n") + log : std::string()));
  }
  return Module(module);
}

Kernels::Kernels(const drt_device_code &code, const std::vector<const drt_image *> &images) : code_(&code) {
  std::string refused;
  for (const drt_image *image : images) {
    try {
      module_ = load(*image);
      break;
    } catch (const Error &error) {
      refused += (refused.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  CUmodule module = module_.get();
  if (!module)
    throw Error(refused);
  int32_t most = 0;
  for (int32_t i = 0; i < code.num_kernels; ++i) {
    CUfunction function = nullptr;
    check(driver().cuModuleGetFunction(&function, module, code.kernels[i].name),
          ("cuModuleGetFunction of " + std::string(code.kernels[i].name)).c_str());
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
  const auto extent = [](const int32_t (&extents)[3], int axis) { return static_cast<unsigned>(extents[axis]); };
  check(driver().cuLaunchKernel(functions_[static_cast<size_t>(kernel)], extent(plan.grid, 0), extent(plan.grid, 1),
                                extent(plan.grid, 2), extent(plan.block, 0), extent(plan.block, 1),
                                extent(plan.block, 2), 0, stream, parameters_.data(), nullptr),
        "cuLaunchKernel");
}

} // namespace drt::cuda

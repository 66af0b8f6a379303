//===- handles.cpp - What CUDA gives, owned -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/handles.h"
#include "core/error.h"

namespace drt::cuda {
namespace {

std::string megabytes(size_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

} // namespace

DeviceMemory::DeviceMemory(int64_t bytes, const char *what) : bytes_(std::max<int64_t>(bytes, 1)) {
  CUdeviceptr made = 0;
  const CUresult status = driver().cuMemAlloc(&made, static_cast<size_t>(bytes_));
  size_t free = 0, total = 0;
  if (status == CUDA_ERROR_OUT_OF_MEMORY && driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    throw Error("the device has no memory for " + std::string(what) + ": " + megabytes(static_cast<size_t>(bytes_)) +
                " are needed, and " + megabytes(free) + " of its " + megabytes(total) +
                " are free; use a smaller batch or more replicas, or end what else runs there");
  check(status, "cuMemAlloc");
  address_ = Owned<CUdeviceptr, freeDevice>(made);
}

} // namespace drt::cuda

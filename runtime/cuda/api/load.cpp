//===- load.cpp - The tables of the machine's libraries -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "cuda/api/library.h"
#include "cuda/api/tables.h"

#include <string>

namespace drt::cuda {
namespace {

// The macros of cuda.h have replaced the name by the versioned one when it becomes a string.
#define DRT_STRING(name) #name
#define DRT_LOAD(function)                                                                                             \
  table.function = reinterpret_cast<decltype(table.function)>(                                                         \
      library.symbol(DRT_STRING(function), olderName(DRT_STRING(function))));

// CUDA 13's headers name a version that drivers before 12.8 do not have; its parameters are the same.
const char *olderName(const std::string &function) {
  return function == "cuEventElapsedTime_v2" ? "cuEventElapsedTime" : nullptr;
}

DriverTable loadDriver() {
  const Library library({"the driver of NVIDIA's GPUs",
                         {"libcuda.so.1"},
                         "install NVIDIA's driver for CUDA 12 or later on this machine, or compile for its processor "
                         "instead (without --target=cuda)"});
  DriverTable table;
  DRT_DRIVER_FUNCTIONS(DRT_LOAD)
  return table;
}

int driverVersion() {
  int version = 0;
  if (driver().cuDriverGetVersion(&version) != CUDA_SUCCESS)
    throw Error("the driver does not say its version");
  return version;
}

CublasLtTable loadCublasLt() {
  const Library library({"cuBLASLt", sonamesFor("libcublasLt.so", driverVersion()),
                         "install cuBLAS of CUDA 13 or 12, or name its folder in LD_LIBRARY_PATH"});
  CublasLtTable table;
  DRT_CUBLASLT_FUNCTIONS(DRT_LOAD)
  return table;
}

CudnnTable loadCudnn() {
  const Library library(
      {"cuDNN", {"libcudnn.so.9"}, "install cuDNN 9 for this CUDA, or name its folder in LD_LIBRARY_PATH"});
  CudnnTable table;
  DRT_CUDNN_FUNCTIONS(DRT_LOAD)
  requireDriver("cuDNN", static_cast<int>(table.cudnnGetCudartVersion()), driverVersion());
  return table;
}

NcclTable loadNccl() {
  const Library library({"NCCL", {"libnccl.so.2"}, "install NCCL 2, or name its folder in LD_LIBRARY_PATH"});
  NcclTable table;
  DRT_NCCL_FUNCTIONS(DRT_LOAD)
  return table;
}

} // namespace

const DriverTable &driver() {
  static const DriverTable table = loadDriver();
  return table;
}

const CublasLtTable &cublasLt() {
  static const CublasLtTable table = loadCublasLt();
  return table;
}

const CudnnTable &cudnn() {
  static const CudnnTable table = loadCudnn();
  return table;
}

const NcclTable &nccl() {
  static const NcclTable table = loadNccl();
  return table;
}

bool isEmulated() { return false; }

} // namespace drt::cuda

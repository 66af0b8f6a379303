//===- tables.h - CUDA's libraries as tables of functions -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_API_TABLES_H
#define DRT_CUDA_API_TABLES_H

#include "cuda/api/functions.h"

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>

namespace drt::cuda {

#define DRT_MEMBER(function) decltype(&::function) function = nullptr;
// The macros of cuda.h would rename members too, so they keep the versioned names where there are some; call them by
// the names of the manual.
struct DriverTable {
  DRT_DRIVER_FUNCTIONS(DRT_MEMBER)
};
struct CublasLtTable {
  DRT_CUBLASLT_FUNCTIONS(DRT_MEMBER)
};
struct CudnnTable {
  DRT_CUDNN_FUNCTIONS(DRT_MEMBER)
};
struct NcclTable {
  DRT_NCCL_FUNCTIONS(DRT_MEMBER)
};
#undef DRT_MEMBER

/// The tables of this process. The first call of each opens the library, once, and throws drt::Error that names the
/// library, where it was looked for and the way out where it is missing or too old. Any thread.
/// Defined by api/load.cpp (the machine's libraries) or by the emulator, whichever the executable is linked with.
const DriverTable &driver();
const CublasLtTable &cublasLt();
const CudnnTable &cudnn();
const NcclTable &nccl();

/// Whether these are the emulator's. It shows what is read but was never written, which on a GPU may be anything: every
/// run begins on an arena full of NaN.
bool isEmulated();

} // namespace drt::cuda

#endif // DRT_CUDA_API_TABLES_H

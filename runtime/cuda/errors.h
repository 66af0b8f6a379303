//===- errors.h - What CUDA's libraries say went wrong --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// check(status, "cuMemAlloc") returns where the call succeeded, and throws drt::Error with the function's name and the
// library's own words where it did not: "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_ERRORS_H
#define DRT_CUDA_ERRORS_H

#include "cuda/api/tables.h"

namespace drt::cuda {

[[noreturn]] void fail(CUresult status, const char *function);
[[noreturn]] void fail(cublasStatus_t status, const char *function);
[[noreturn]] void fail(cudnnStatus_t status, const char *function);
[[noreturn]] void fail(ncclResult_t status, const char *function);

/// Every library's success is 0.
template <class Status> inline void check(Status status, const char *function) {
  if (static_cast<int>(status) != 0) [[unlikely]]
    fail(status, function);
}

} // namespace drt::cuda

#endif // DRT_CUDA_ERRORS_H

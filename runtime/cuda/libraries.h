//===- libraries.h - cuBLASLt and cuDNN for a replica's library calls -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The handles are a replica's, so that replicas' threads share nothing. They are made while the first entry that calls
// the library is prepared: a library that the program does not call is not opened.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_LIBRARIES_H
#define DRT_CUDA_LIBRARIES_H

#include "core/memory.h"
#include "cuda/handles.h"
#include "cuda/replica.h"

namespace drt::cuda {

inline void freeCublasLt(cublasLtHandle_t handle) { cublasLt().cublasLtDestroy(handle); }
inline void freeCudnn(cudnnHandle_t handle) { cudnn().cudnnDestroy(handle); }

class Libraries {
public:
  static Libraries &of(Replica &replica) {
    if (!replica.libraries)
      replica.libraries = std::make_shared<Libraries>();
    return *replica.libraries;
  }

  cublasLtHandle_t cublasLt();
  /// Works on `stream`, that of the first call.
  cudnnHandle_t cudnn(CUstream stream);

private:
  Owned<cublasLtHandle_t, freeCublasLt> cublasLt_;
  Owned<cudnnHandle_t, freeCudnn> cudnn_;
};

/// Memory that a call needs while it runs: parts of the replica's workspace, one behind the other. The calls of a
/// replica run one after the other, so that all share it.
class WorkspaceParts {
public:
  /// Where the part begins in the workspace, in bytes: aligned as libraries want it.
  int64_t add(int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ += roundUp(bytes, alignment);
    return begin;
  }
  int64_t bytes() const { return bytes_; }

private:
  static constexpr int64_t alignment = 256;
  int64_t bytes_ = 0;
};

} // namespace drt::cuda

#endif // DRT_CUDA_LIBRARIES_H

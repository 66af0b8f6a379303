//===- libraries.cpp - cuBLASLt and cuDNN for a replica's library calls ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/libraries.h"

namespace drt::cuda {

cublasLtHandle_t Libraries::cublasLt() {
  if (!cublasLt_.get()) {
    cublasLtHandle_t made = nullptr;
    check(cuda::cublasLt().cublasLtCreate(&made), "cublasLtCreate");
    cublasLt_ = Owned<cublasLtHandle_t, freeCublasLt>(made);
  }
  return cublasLt_.get();
}

cudnnHandle_t Libraries::cudnn(CUstream stream) {
  if (!cudnn_.get()) {
    cudnnHandle_t made = nullptr;
    check(cuda::cudnn().cudnnCreate(&made), "cudnnCreate");
    cudnn_ = Owned<cudnnHandle_t, freeCudnn>(made);
    check(cuda::cudnn().cudnnSetStream(made, stream), "cudnnSetStream");
  }
  return cudnn_.get();
}

} // namespace drt::cuda

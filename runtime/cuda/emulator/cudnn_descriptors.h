//===- cudnn_descriptors.h - What the emulated cuDNN is told of tensors ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_CUDNN_DESCRIPTORS_H
#define DRT_CUDA_EMULATOR_CUDNN_DESCRIPTORS_H

#include "cuda/api/functions.h"
#include "cuda/emulator/elements.h"
#include "cuda/emulator/machine.h"

#include <cudnn.h>

#include <type_traits>

namespace drt::cuda::emulated {

// cuDNN's functions, in this namespace.
#define DRT_EMULATED_DECLARATION(function) std::remove_pointer_t<decltype(&::function)> function;
DRT_CUDNN_FUNCTIONS(DRT_EMULATED_DECLARATION)
#undef DRT_EMULATED_DECLARATION

struct TensorDescription {
  bool set = false;
  cudnnDataType_t type;
  int n, c, h, w;
  int64_t nStride, cStride, hStride, wStride;

  bool sameShape(const TensorDescription &other) const {
    return n == other.n && c == other.c && h == other.h && w == other.w;
  }
  bool isNhwc() const { return cStride == 1 && wStride == c && hStride == int64_t(w) * c; }
  bool isNchw() const { return wStride == 1 && hStride == w && cStride == int64_t(h) * w; }
  size_t extent() const {
    return static_cast<size_t>((n - 1) * nStride + (c - 1) * cStride + (h - 1) * hStride + (w - 1) * wStride) + 1;
  }
  int64_t at(int64_t in, int64_t ic, int64_t ih, int64_t iw) const {
    return in * nStride + ic * cStride + ih * hStride + iw * wStride;
  }
};

struct FilterDescription {
  bool set = false;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int k, c, h, w;

  size_t extent() const { return size_t(k) * size_t(c) * size_t(h) * size_t(w); }
  int64_t cStride() const { return format == CUDNN_TENSOR_NHWC ? 1 : int64_t(h) * w; }
  int64_t at(int64_t ik, int64_t ih, int64_t iw) const { // of channel 0
    return format == CUDNN_TENSOR_NHWC ? ((ik * h + ih) * w + iw) * c : ik * c * h * w + ih * w + iw;
  }
};

struct ConvolutionDescription {
  bool set = false;
  int padH, padW, strideH, strideW, dilationH, dilationW;
  cudnnDataType_t compute;
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

struct PoolingDescription {
  bool set = false;
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int h, w, padH, padW, strideH, strideW;
};

struct ActivationDescription {
  bool set = false;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
};

struct CudnnHandle {
  CUstream stream = nullptr;
};

/// The description behind a handle. Throws CUDA_ERROR_INVALID_VALUE where there is none or nothing was set.
template <class Description, class Handle> const Description &described(Handle handle) {
  auto *description = reinterpret_cast<const Description *>(handle);
  require(description && description->set, CUDA_ERROR_INVALID_VALUE, "a descriptor that says nothing");
  return *description;
}
inline const TensorDescription &tensor(cudnnTensorDescriptor_t handle) { return described<TensorDescription>(handle); }

/// What lies where `of`, a tensor or a filter, says.
template <class Description>
Elements elementsOf(const Description &of, const Memory &memory, int device, const void *data) {
  return Elements(memory, device, data, of.extent(), dtypeOf(of.type));
}
template <class Description>
std::vector<double> valuesOf(const Description &of, const Memory &memory, int device, const void *data) {
  return elementsOf(of, memory, device, data).wide(of.extent());
}

CUstream streamOf(cudnnHandle_t handle);

/// alpha or beta: of float64 where the tensors are, else of float32.
inline double scalar(const void *value, cudnnDataType_t type) {
  require(value != nullptr, CUDA_ERROR_INVALID_VALUE, "alpha or beta is missing");
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double *>(value) : *static_cast<const float *>(value);
}

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_CUDNN_DESCRIPTORS_H

//===- cudnn_descriptors.cpp - Handles and descriptors of the emulated cuDNN ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/cudnn_descriptors.h"

#include "cuda/api/tables.h"
#include "cuda/emulator/table.h"

namespace drt::cuda::emulated {

template <> cudnnStatus_t statusOf(const Failure &failure) {
  switch (failure.code) {
  case CUDA_ERROR_INVALID_VALUE:
  case CUDA_ERROR_INVALID_HANDLE:
    return CUDNN_STATUS_BAD_PARAM;
  case CUDA_ERROR_NOT_SUPPORTED:
    return CUDNN_STATUS_NOT_SUPPORTED;
  case CUDA_ERROR_NOT_INITIALIZED:
  case CUDA_ERROR_INVALID_CONTEXT:
    return CUDNN_STATUS_NOT_INITIALIZED;
  default:
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

namespace {
template <class Description, class Handle> cudnnStatus_t create(Handle *handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the descriptor");
  *handle = reinterpret_cast<Handle>(new Description);
  return CUDNN_STATUS_SUCCESS;
}
template <class Description, class Handle> cudnnStatus_t destroy(Handle handle) {
  delete reinterpret_cast<Description *>(handle);
  return CUDNN_STATUS_SUCCESS;
}
template <class Description, class Handle> Description &given(Handle handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "no descriptor");
  return *reinterpret_cast<Description *>(handle);
}
void requireValue(bool condition, const char *detail) { require(condition, CUDA_ERROR_INVALID_VALUE, detail); }
} // namespace

CUstream streamOf(cudnnHandle_t handle) {
  requireValue(handle != nullptr, "no handle");
  return reinterpret_cast<CudnnHandle *>(handle)->stream;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  Lock lock(Machine::get().mutex);
  Machine::get().device();
  return create<CudnnHandle>(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Machine::get().requireContext("cudnnDestroy");
  return destroy<CudnnHandle>(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  given<CudnnHandle>(handle).stream = reinterpret_cast<CUstream>(stream);
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }

size_t cudnnGetCudartVersion() { return CUDA_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_UNKNOWN_STATUS";
  }
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *handle) { return create<TensorDescription>(handle); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t handle) {
  return destroy<TensorDescription>(handle);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int n, int c, int h,
                                           int w, int nStride, int cStride, int hStride, int wStride) {
  requireValue(n > 0 && c > 0 && h > 0 && w > 0, "a tensor with an empty dimension");
  requireValue(nStride > 0 && cStride > 0 && hStride > 0 && wStride > 0, "a stride that is not positive");
  given<TensorDescription>(handle) = {true, type, n, c, h, w, nStride, cStride, hStride, wStride};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  require(format == CUDNN_TENSOR_NHWC || format == CUDNN_TENSOR_NCHW, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator has NCHW and NHWC");
  if (format == CUDNN_TENSOR_NHWC)
    return emulated::cudnnSetTensor4dDescriptorEx(handle, type, n, c, h, w, h * w * c, 1, w * c, c);
  return emulated::cudnnSetTensor4dDescriptorEx(handle, type, n, c, h, w, c * h * w, h * w, w, 1);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *handle) { return create<FilterDescription>(handle); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t handle) {
  return destroy<FilterDescription>(handle);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  requireValue(k > 0 && c > 0 && h > 0 && w > 0, "a filter with an empty dimension");
  require(format == CUDNN_TENSOR_NHWC || format == CUDNN_TENSOR_NCHW, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator has NCHW and NHWC");
  given<FilterDescription>(handle) = {true, type, format, k, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *handle) {
  return create<ConvolutionDescription>(handle);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle) {
  return destroy<ConvolutionDescription>(handle);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t handle, int padH, int padW, int strideH,
                                              int strideW, int dilationH, int dilationW, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  requireValue(padH >= 0 && padW >= 0, "negative padding");
  requireValue(strideH > 0 && strideW > 0 && dilationH > 0 && dilationW > 0, "a stride or dilation less than one");
  require(mode == CUDNN_CROSS_CORRELATION, CUDA_ERROR_NOT_SUPPORTED, "the emulator has cross-correlation");
  auto &description = given<ConvolutionDescription>(handle);
  description = {
      true, padH, padW, strideH, strideW, dilationH, dilationW, compute, description.groups, description.math};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle, int groups) {
  requireValue(groups > 0, "no groups");
  given<ConvolutionDescription>(handle).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
  given<ConvolutionDescription>(handle).math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *handle) {
  return create<ActivationDescription>(handle);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t handle) {
  return destroy<ActivationDescription>(handle);
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t handle, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double) {
  given<ActivationDescription>(handle) = {true, mode, nan};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *handle) {
  return create<PoolingDescription>(handle);
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t handle) {
  return destroy<PoolingDescription>(handle);
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t handle, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int h, int w, int padH, int padW, int strideH,
                                          int strideW) {
  requireValue(h > 0 && w > 0 && padH >= 0 && padW >= 0 && strideH > 0 && strideW > 0,
               "a window, padding or stride that is none");
  requireValue(padH < h && padW < w, "padding as large as the window");
  given<PoolingDescription>(handle) = {true, mode, nan, h, w, padH, padW, strideH, strideW};
  return CUDNN_STATUS_SUCCESS;
}

} // namespace drt::cuda::emulated

const drt::cuda::CudnnTable &drt::cuda::cudnn() {
  static const CudnnTable made = [] {
    using namespace emulated;
    CudnnTable table;
    DRT_CUDNN_FUNCTIONS(DRT_EMULATED_ENTRY)
    return table;
  }();
  return made;
}

//===- cudnn_handles.h - cuDNN's descriptors, owned -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_CUDNN_HANDLES_H
#define DRT_CUDA_CUDNN_HANDLES_H

#include "core/dtype.h"
#include "core/error.h"
#include "cuda/handles.h"

#include <limits>

namespace drt::cuda {

#define DRT_CUDNN_DESCRIPTOR(kind)                                                                                     \
  inline void free##kind(cudnn##kind##Descriptor_t descriptor) { cudnn().cudnnDestroy##kind##Descriptor(descriptor); } \
  using kind##Descriptor = Owned<cudnn##kind##Descriptor_t, free##kind>;                                               \
  inline kind##Descriptor make##kind() {                                                                               \
    cudnn##kind##Descriptor_t made = nullptr;                                                                          \
    check(cudnn().cudnnCreate##kind##Descriptor(&made), "cudnnCreate" #kind "Descriptor");                             \
    return kind##Descriptor(made);                                                                                     \
  }
DRT_CUDNN_DESCRIPTOR(Tensor)
DRT_CUDNN_DESCRIPTOR(Filter)
DRT_CUDNN_DESCRIPTOR(Convolution)
DRT_CUDNN_DESCRIPTOR(Activation)
DRT_CUDNN_DESCRIPTOR(Pooling)
#undef DRT_CUDNN_DESCRIPTOR

/// cuDNN counts in int.
inline int asInt(int64_t value) {
  if (value > std::numeric_limits<int>::max())
    throw Error("cuDNN takes tensors of up to 2^31 elements: make the batch smaller, or use more replicas");
  return static_cast<int>(value);
}

/// Of the types that convolutions and pooling have; throws for another, which the compiler refuses.
inline cudnnDataType_t cudnnTypeOf(int32_t dtype) {
  switch (dtype) {
  case DRT_F32:
    return CUDNN_DATA_FLOAT;
  case DRT_F64:
    return CUDNN_DATA_DOUBLE;
  case DRT_F16:
    return CUDNN_DATA_HALF;
  case DRT_BF16:
    return CUDNN_DATA_BFLOAT16;
  default:
    throw Error("cuDNN is given no " + dtypeName(dtype) + ": an internal error of the compiler", 70);
  }
}

/// Dense.
inline TensorDescriptor imageDescriptor(int32_t dtype, int64_t n, int64_t h, int64_t w, int64_t c,
                                        cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC) {
  TensorDescriptor made = makeTensor();
  asInt(n * h * w * c);
  check(cudnn().cudnnSetTensor4dDescriptor(made.get(), format, cudnnTypeOf(dtype), asInt(n), asInt(c), asInt(h),
                                           asInt(w)),
        "cudnnSetTensor4dDescriptor");
  return made;
}

/// A number that a call scales by: of float64 where its tensors are, else of float32.
class Scalar {
public:
  Scalar(int32_t dtype, double value)
      : isDouble_(dtype == DRT_F64), double_(value), float_(static_cast<float>(value)) {}
  const void *get() const { return isDouble_ ? static_cast<const void *>(&double_) : &float_; }

private:
  bool isDouble_;
  double double_;
  float float_;
};

} // namespace drt::cuda

#endif // DRT_CUDA_CUDNN_HANDLES_H

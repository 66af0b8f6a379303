//===- elements.h - Floating-point elements in device memory --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_ELEMENTS_H
#define DRT_CUDA_EMULATOR_ELEMENTS_H

#include "core/dtype.h"
#include "core/values.h"
#include "cuda/emulator/failure.h"
#include "cuda/emulator/memory.h"

#include <cudnn.h>
#include <library_types.h>

#include <vector>

namespace drt::cuda::emulated {

/// DRT_* of a library's type. Throws CUDA_ERROR_NOT_SUPPORTED for one that has no floating-point elements.
inline int32_t dtypeOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_32F:
    return DRT_F32;
  case CUDA_R_64F:
    return DRT_F64;
  case CUDA_R_16F:
    return DRT_F16;
  case CUDA_R_16BF:
    return DRT_BF16;
  default:
    require(false, CUDA_ERROR_NOT_SUPPORTED, "the emulator has no elements of this type");
    return 0;
  }
}
inline int32_t dtypeOf(cudnnDataType_t type) {
  switch (type) {
  case CUDNN_DATA_FLOAT:
    return DRT_F32;
  case CUDNN_DATA_DOUBLE:
    return DRT_F64;
  case CUDNN_DATA_HALF:
    return DRT_F16;
  case CUDNN_DATA_BFLOAT16:
    return DRT_BF16;
  default:
    require(false, CUDA_ERROR_NOT_SUPPORTED, "the emulator has no elements of this type");
    return 0;
  }
}

/// An array in device memory.
class Elements {
public:
  Elements(const Memory &memory, int device, const void *address, size_t count, int32_t dtype) : dtype_(dtype) {
    const auto size = static_cast<size_t>(dtypeSize(dtype));
    data_ = memory.resolve(device, reinterpret_cast<CUdeviceptr>(address), count * size, size);
  }

  double operator[](size_t index) const { return valueAt(dtype_, data_, static_cast<int64_t>(index)); }
  /// As a library's sum has it before it is stored: float32, of float64 elements float64.
  double computed(double value) const { return dtype_ == DRT_F64 ? value : static_cast<float>(value); }
  void set(size_t index, double value) { setFloatAt(dtype_, data_, static_cast<int64_t>(index), value); }

  /// The first `count` as float64, which holds whatever a narrower type does.
  std::vector<double> wide(size_t count) const {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = (*this)[i];
    return values;
  }

private:
  int32_t dtype_;
  char *data_;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_ELEMENTS_H

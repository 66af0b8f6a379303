//===- shared_device.cpp - Replicas of one task that share a device -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/shared_device.h"
#include "collectives/reduce_sum.h"
#include "core/dtype.h"
#include "core/error.h"

namespace drt::cuda {
namespace {

template <class T> void divide(std::vector<char> &values, int64_t count, int64_t divisor) {
  T *numbers = reinterpret_cast<T *>(values.data());
  for (int64_t i = 0; i < count; ++i)
    numbers[i] /= static_cast<T>(divisor);
}

void divide(std::vector<char> &values, int64_t count, int32_t dtype, int64_t divisor) {
  switch (dtype) {
  case DRT_F32:
    return divide<float>(values, count, divisor);
  case DRT_F64:
    return divide<double>(values, count, divisor);
  case DRT_I32:
    return divide<int32_t>(values, count, divisor);
  default:
    return divide<int64_t>(values, count, divisor);
  }
}

} // namespace

void SharedDevice::fetch(int32_t replica, CUdeviceptr data, int64_t bytes, CUstream stream) {
  std::vector<char> &part = parts_[static_cast<size_t>(replica)];
  part.resize(static_cast<size_t>(bytes));
  check(driver().cuMemcpyDtoHAsync(part.data(), data, part.size(), stream), "cuMemcpyDtoHAsync");
  check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void SharedDevice::join() {
  if (!barrier_.wait({stop_, 0}))
    throw Error("another replica has failed");
}

void SharedDevice::allReduce(int32_t replica, CUdeviceptr data, int64_t count, int32_t dtype, int32_t reduction,
                             CUstream stream) {
  const SumType type = sum_type(static_cast<drt_dtype>(dtype));
  fetch(replica, data, count * dtypeSize(dtype), stream);
  join();
  std::vector<char> sum = parts_[0];
  for (size_t i = 1; i < parts_.size(); ++i)
    type.sum(sum.data(), sum.data(), parts_[i].data(), static_cast<size_t>(count));
  if (reduction == DRT_REDUCE_MEAN)
    divide(sum, count, dtype, static_cast<int64_t>(parts_.size()));
  check(driver().cuMemcpyHtoDAsync(data, sum.data(), sum.size(), stream), "cuMemcpyHtoDAsync");
  check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  join(); // the parts have been read
}

void SharedDevice::allGather(int32_t replica, CUdeviceptr data, int64_t shareBytes, CUstream stream) {
  gather(replica, data + static_cast<size_t>(replica) * static_cast<size_t>(shareBytes), data, shareBytes, stream);
}

void SharedDevice::gather(int32_t replica, CUdeviceptr own, CUdeviceptr all, int64_t bytes, CUstream stream) {
  fetch(replica, own, bytes, stream);
  join();
  for (const std::vector<char> &part : parts_) {
    check(driver().cuMemcpyHtoDAsync(all, part.data(), part.size(), stream), "cuMemcpyHtoDAsync");
    all += part.size();
  }
  check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  join(); // the parts have been read
}

void SharedDevice::broadcast(int32_t replica, CUdeviceptr data, int64_t bytes, CUstream stream) {
  if (replica == 0)
    fetch(replica, data, bytes, stream);
  join();
  if (replica != 0) {
    check(driver().cuMemcpyHtoDAsync(data, parts_[0].data(), static_cast<size_t>(bytes), stream), "cuMemcpyHtoDAsync");
    check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  join();
}

} // namespace drt::cuda

//===- shared_device.h - Replicas of one task that share a device ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_SHARED_DEVICE_H
#define DRT_CUDA_SHARED_DEVICE_H

#include "core/counter.h"
#include "cuda/handles.h"
#include "drt/drt.h"

#include <atomic>
#include <vector>

namespace drt::cuda {

/// NCCL takes one rank a device. So where tests put several replicas on one (--share-devices), gradients are summed on
/// the host, while the replicas' threads wait: their entries are not captured. Every replica of the task calls the
/// same, in its thread; throws drt::Error, also when another replica has failed meanwhile.
class SharedDevice {
public:
  SharedDevice(int32_t replicas, const std::atomic<bool> &stop)
      : parts_(static_cast<size_t>(replicas)), barrier_(static_cast<uint32_t>(replicas)), stop_(stop) {}

  void allReduce(int32_t replica, CUdeviceptr data, int64_t count, int32_t dtype, int32_t reduction, CUstream stream);
  /// Of each replica its share, to all: replica r's begins at r * `shareBytes`.
  void allGather(int32_t replica, CUdeviceptr data, int64_t shareBytes, CUstream stream);
  /// Of each replica the bytes at `own`, to all: replica r's go to `all` + r * `bytes`.
  void gather(int32_t replica, CUdeviceptr own, CUdeviceptr all, int64_t bytes, CUstream stream);
  /// Replica 0's bytes to all.
  void broadcast(int32_t replica, CUdeviceptr data, int64_t bytes, CUstream stream);

private:
  void fetch(int32_t replica, CUdeviceptr data, int64_t bytes, CUstream stream);
  void join();

  std::vector<std::vector<char>> parts_;
  Barrier barrier_;
  const std::atomic<bool> &stop_;
};

} // namespace drt::cuda

#endif // DRT_CUDA_SHARED_DEVICE_H

//===- device.h - A CUDA device and its context ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_DEVICE_H
#define DRT_CUDA_DEVICE_H

#include "cuda/api/tables.h"

#include <string>

namespace drt {
struct TaskConfig;
}

namespace drt::cuda {

/// At least one. Throws drt::Error where the machine has no driver or no device.
int countDevices();

/// The device of a task's replica: the host's replicas take its devices in their order. Throws drt::Error where the
/// machine has no driver, no device, or fewer devices than the plan has replicas here.
int deviceOf(const TaskConfig &config, int localReplica);

/// Whether some of the task's replicas have one device together.
bool sharesDevices(const TaskConfig &config);

/// A device's primary context, kept while this is.
class Device {
public:
  explicit Device(int ordinal);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// In the calling thread.
  void makeCurrent() const;
  CUcontext context() const { return context_; }

  /// "device 1 (NVIDIA H100 80GB HBM3)"
  const std::string &name() const { return name_; }
  /// As its driver calls it: "NVIDIA H100 80GB HBM3".
  const std::string &chip() const { return chip_; }
  int major() const { return major_; }
  int minor() const { return minor_; }

private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string name_, chip_;
  int major_ = 0, minor_ = 0; // compute capability
};

} // namespace drt::cuda

#endif // DRT_CUDA_DEVICE_H

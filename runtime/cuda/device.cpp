//===- device.cpp - A CUDA device and its context -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/device.h"
#include "core/error.h"
#include "core/task.h"
#include "cuda/errors.h"

#include <cstdlib>

namespace drt::cuda {
namespace {

int replicasOfHost(const TaskConfig &config) {
  return config.hostReplicas > config.localReplicas ? config.hostReplicas : config.localReplicas;
}

std::string counted(int count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

} // namespace

int countDevices() {
  const CUresult status = driver().cuInit(0);
  int count = 0;
  if (status == CUDA_SUCCESS)
    check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
  else if (status != CUDA_ERROR_NO_DEVICE)
    check(status, "cuInit");
  if (count == 0)
    throw Error("this machine has no CUDA device, or CUDA_VISIBLE_DEVICES hides it; the program was compiled for one: "
                "run it where there is one, or compile it without --target=cuda");
  return count;
}

int deviceOf(const TaskConfig &config, int localReplica) {
  const int devices = countDevices();
  const int wanted = config.hostOffset + localReplica;
  const int replicas = replicasOfHost(config);
  if (replicas <= devices)
    return wanted;
  if (config.shareDevices)
    return wanted % devices;
  // A launcher may show each task its own devices only.
  if (devices == config.localReplicas && std::getenv("CUDA_VISIBLE_DEVICES"))
    return localReplica;
  throw Error("the plan places " + counted(replicas, "replica") + " on this host, which has " +
              counted(devices, "CUDA device") + "; compile for as many replicas as there are devices");
}

bool sharesDevices(const TaskConfig &config) { return config.shareDevices && config.localReplicas > countDevices(); }

Device::Device(int ordinal) {
  check(driver().cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  char name[256] = "";
  check(driver().cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
  chip_ = name;
  name_ = "device " + std::to_string(ordinal) + " (" + chip_ + ")";
  major_ = attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  minor_ = attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  check(driver().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

Device::~Device() { driver().cuDevicePrimaryCtxRelease(device_); }

void Device::makeCurrent() const { check(driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

} // namespace drt::cuda

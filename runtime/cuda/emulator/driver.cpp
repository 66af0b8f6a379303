//===- driver.cpp - libcuda: devices, memory, modules and kernels ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/driver.h"

#include "cuda/emulator/machine.h"
#include "cuda/emulator/module.h"

#include <cstring>
#include <vector>

namespace drt::cuda::emulated {
namespace {
template <class Object> void requireOutput(const Object *pointer) {
  require(pointer != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the result");
}

// Only what a plain lock guards.
Lock locked() { return Lock(Machine::get().mutex); }

int attributeOf(CUdevice_attribute attribute) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return 9;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return 0;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return 132;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 48 << 10;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    return 1;
  default:
    throw Failure(CUDA_ERROR_INVALID_VALUE, "an attribute that the emulated device does not have");
  }
}

// A copy or a fill of device memory, checked when it runs.
void enqueueOn(Lock &, CUstream handle, const char *label, std::function<void(int device)> run) {
  Machine &machine = Machine::get();
  Stream &stream = machine.stream(handle);
  machine.enqueue(stream, {label,
                           [run = std::move(run), device = stream.device] {
                             return [run, device] {
                               run(device);
                               return Progress::Done;
                             };
                           },
                           nullptr});
}

// Pageable memory is no part of a graph: the manual has the copy wait for the staging.
bool pinned(const Stream &stream, const void *host, size_t bytes) {
  if (Machine::get().memory.isPinned(host, bytes))
    return true;
  if (stream.capture) {
    stream.capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a copy of pageable memory during a capture");
  }
  return false;
}
} // namespace

CUresult cuInit(unsigned flags) {
  Lock lock = locked();
  require(flags == 0, CUDA_ERROR_INVALID_VALUE, "flags must be 0");
  require(!Machine::get().devices.empty(), CUDA_ERROR_NO_DEVICE, "DRT_EMULATED_DEVICES is 0");
  Machine::get().initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  requireOutput(version);
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  Lock lock = locked();
  requireOutput(count);
  require(Machine::get().initialized, CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
  *count = static_cast<int>(Machine::get().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  Lock lock = locked();
  requireOutput(device);
  Machine::get().deviceAt(ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  Lock lock = locked();
  Machine::get().deviceAt(device);
  require(name && length > 0, CUDA_ERROR_INVALID_VALUE, "no place for the name");
  std::strncpy(name, "Emulated CUDA device", static_cast<size_t>(length));
  name[length - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  Lock lock = locked();
  requireOutput(value);
  Machine::get().deviceAt(device);
  *value = attributeOf(attribute);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  Lock lock = locked();
  requireOutput(context);
  ++Machine::get().deviceAt(device).retained;
  *context = Machine::contextOf(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Lock lock = locked();
  Device &released = Machine::get().deviceAt(device);
  require(released.retained > 0, CUDA_ERROR_INVALID_CONTEXT, "the context was not retained");
  --released.retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  int device = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  if (context)
    require(machine.deviceAt(device).retained > 0, CUDA_ERROR_INVALID_CONTEXT, "the context was not retained");
  Machine::current = device;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  Lock lock = locked();
  requireOutput(free);
  requireOutput(total);
  Machine &machine = Machine::get();
  *total = machine.deviceBytes;
  *free = *total - machine.memory.used(machine.device());
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  requireOutput(address);
  machine.forbidInCapture("cuMemAlloc");
  *address = machine.memory.allocate(machine.device(), bytes, machine.deviceBytes);
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  if (!address)
    return CUDA_SUCCESS;
  machine.forbidInCapture("cuMemFree");
  machine.device();
  machine.drain(lock, machine.memory.owner(address));
  machine.memory.free(address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  requireOutput(address);
  machine.forbidInCapture("cuMemHostAlloc");
  machine.device();
  *address = machine.memory.allocatePinned(bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *address) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  machine.forbidInCapture("cuMemFreeHost");
  machine.drain(lock, machine.device());
  machine.memory.freePinned(address);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  std::shared_ptr<std::vector<char>> staged;
  if (!pinned(machine.stream(stream), from, bytes)) {
    auto *first = static_cast<const char *>(from);
    staged = std::make_shared<std::vector<char>>(first, first + bytes);
  }
  enqueueOn(lock, stream, "cuMemcpyHtoDAsync", [=, &machine](int device) {
    std::memcpy(machine.memory.resolve(device, to, bytes), staged ? staged->data() : from, bytes);
  });
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  Stream &stream = machine.stream(handle);
  bool wait = !pinned(stream, to, bytes);
  enqueueOn(lock, handle, "cuMemcpyDtoHAsync",
            [=, &machine](int device) { std::memcpy(to, machine.memory.resolve(device, from, bytes), bytes); });
  if (wait)
    machine.synchronize(lock, stream);
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  Lock lock = locked();
  require(function != nullptr, CUDA_ERROR_INVALID_VALUE, "no function to launch");
  enqueueOn(lock, stream, "cuLaunchHostFunc", [=](int) { function(data); });
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  enqueueOn(lock, stream, "cuMemcpyDtoDAsync", [=, &machine](int device) {
    std::memmove(machine.memory.resolve(device, to, bytes), machine.memory.resolve(device, from, bytes), bytes);
  });
  return CUDA_SUCCESS;
}

// Of device memory: `Depth` slices of `Height` rows.
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *given, CUstream stream) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  require(given != nullptr, CUDA_ERROR_INVALID_VALUE, "nothing to copy");
  CUDA_MEMCPY3D copy = *given;
  require(copy.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy.dstMemoryType == CU_MEMORYTYPE_DEVICE,
          CUDA_ERROR_NOT_SUPPORTED, "the emulator copies blocks of device memory");
  require(copy.srcXInBytes + copy.WidthInBytes <= copy.srcPitch &&
              copy.dstXInBytes + copy.WidthInBytes <= copy.dstPitch,
          CUDA_ERROR_INVALID_VALUE, "rows longer than their pitch");
  bool slices = copy.srcY + copy.Height <= copy.srcHeight && copy.dstY + copy.Height <= copy.dstHeight;
  require(copy.Depth == 1 || slices, CUDA_ERROR_INVALID_VALUE, "slices higher than those of the memory");
  enqueueOn(lock, stream, "cuMemcpy3DAsync", [=, &machine](int device) {
    for (size_t z = 0; z < copy.Depth; ++z)
      for (size_t y = 0; y < copy.Height; ++y) {
        size_t from = ((copy.srcZ + z) * copy.srcHeight + copy.srcY + y) * copy.srcPitch + copy.srcXInBytes;
        size_t to = ((copy.dstZ + z) * copy.dstHeight + copy.dstY + y) * copy.dstPitch + copy.dstXInBytes;
        std::memcpy(machine.memory.resolve(device, copy.dstDevice + to, copy.WidthInBytes),
                    machine.memory.resolve(device, copy.srcDevice + from, copy.WidthInBytes), copy.WidthInBytes);
      }
  });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  require(to % sizeof(value) == 0, CUDA_ERROR_INVALID_VALUE, "16-bit elements at an odd address");
  enqueueOn(lock, stream, "cuMemsetD16Async", [=, &machine](int device) {
    char *elements = machine.memory.resolve(device, to, count * sizeof(value));
    for (size_t i = 0; i < count; ++i)
      std::memcpy(elements + i * sizeof(value), &value, sizeof(value));
  });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  enqueueOn(lock, stream, "cuMemsetD8Async",
            [=, &machine](int device) { std::memset(machine.memory.resolve(device, to, bytes), value, bytes); });
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *, void **) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  requireOutput(module);
  require(image != nullptr, CUDA_ERROR_INVALID_VALUE, "no image");
  machine.forbidInCapture("cuModuleLoadDataEx");
  *module = machine.modules.add(std::make_shared<Module>(image, machine.device()));
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  requireOutput(function);
  machine.device();
  *function = machine.kernels.add(machine.modules.at(module)->find(name));
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  machine.forbidInCapture("cuModuleUnload");
  machine.device();
  machine.drain(lock, machine.modules.at(module)->device());
  machine.modules.remove(module);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream handle, void **parameters,
                        void **extra) {
  Lock lock = locked();
  Machine &machine = Machine::get();
  Stream &stream = machine.stream(handle);
  std::shared_ptr<Kernel> kernel = machine.kernels.at(function);
  require(kernel->module->device() == stream.device, CUDA_ERROR_INVALID_HANDLE, "the kernel is another device's");
  require(!extra && sharedBytes == 0, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator takes kernelParams, and no dynamic memory");
  LaunchShape shape = {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}};
  shape.check();
  auto arguments = std::make_shared<const std::vector<void *>>(kernel->arguments(parameters));
  machine.enqueue(stream, {kernel->name,
                           [&machine, kernel, shape, arguments, device = stream.device] {
                             uint64_t seed = machine.engine.random();
                             return [=, &machine] {
                               std::lock_guard computing(machine.deviceAt(device).computing);
                               kernel->run(machine.memory, device, shape, *arguments, seed);
                               return Progress::Done;
                             };
                           },
                           nullptr});
  return CUDA_SUCCESS;
}

} // namespace drt::cuda::emulated

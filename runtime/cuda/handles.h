//===- handles.h - What CUDA gives, owned ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Each is made in the context that is current, and must be freed while that is current or another of the same process:
// the driver finds a handle's own context. What cannot be freed (the device has failed) is left to the process's end.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_HANDLES_H
#define DRT_CUDA_HANDLES_H

#include "cuda/errors.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace drt::cuda {

/// A handle that `Free` gives back.
template <class Handle, void (*free)(Handle)> class Owned {
public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned &&other) noexcept : handle_(std::exchange(other.handle_, Handle())) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_)
      free(handle_);
  }
  Handle get() const { return handle_; }
  /// Not owned any more.
  Handle release() { return std::exchange(handle_, Handle()); }

private:
  Handle handle_ = Handle();
};

inline void freeStream(CUstream stream) { driver().cuStreamDestroy(stream); }
inline void freeEvent(CUevent event) { driver().cuEventDestroy(event); }
inline void freeGraph(CUgraph graph) { driver().cuGraphDestroy(graph); }
inline void freeExec(CUgraphExec exec) { driver().cuGraphExecDestroy(exec); }
inline void freeModule(CUmodule module) { driver().cuModuleUnload(module); }
inline void freeDevice(CUdeviceptr address) { driver().cuMemFree(address); }
inline void freePinned(char *address) { driver().cuMemFreeHost(address); }

using Graph = Owned<CUgraph, freeGraph>;
using GraphExec = Owned<CUgraphExec, freeExec>;
using Module = Owned<CUmodule, freeModule>;

class Stream : public Owned<CUstream, freeStream> {
public:
  Stream() = default;
  /// Work of a lower number goes first.
  static Stream make(int priority = 0) {
    Stream stream;
    CUstream made = nullptr;
    check(driver().cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, priority), "cuStreamCreateWithPriority");
    static_cast<Owned &>(stream) = Owned(made);
    return stream;
  }
};

class Event : public Owned<CUevent, freeEvent> {
public:
  Event() = default;
  static Event make(bool timing = false) {
    Event event;
    CUevent made = nullptr;
    check(driver().cuEventCreate(&made, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    static_cast<Owned &>(event) = Owned(made);
    return event;
  }
};

inline void record(const Event &event, CUstream stream) {
  check(driver().cuEventRecord(event.get(), stream), "cuEventRecord");
}
inline void waitFor(CUstream stream, const Event &event) {
  check(driver().cuStreamWaitEvent(stream, event.get(), CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

/// Device memory, 256-byte aligned, its contents undefined. `what`: for the error where there is not that much.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(int64_t bytes, const char *what);

  char *data() const { return reinterpret_cast<char *>(address_.get()); }
  CUdeviceptr address() const { return address_.get(); }
  int64_t bytes() const { return bytes_; }
  void fill(unsigned char byte, CUstream stream) const {
    check(driver().cuMemsetD8Async(address(), byte, static_cast<size_t>(bytes_), stream), "cuMemsetD8Async");
  }
  void clear(CUstream stream) const { fill(0, stream); }

private:
  Owned<CUdeviceptr, freeDevice> address_;
  int64_t bytes_ = 0;
};

/// The host's memory that a device reads and writes while the host goes on.
class PinnedMemory {
public:
  PinnedMemory() = default;
  explicit PinnedMemory(int64_t bytes) {
    void *made = nullptr;
    check(driver().cuMemHostAlloc(&made, static_cast<size_t>(std::max<int64_t>(bytes, 1)), CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
    address_ = Owned<char *, freePinned>(static_cast<char *>(made));
  }

  char *data() const { return address_.get(); }

private:
  Owned<char *, freePinned> address_;
};

inline CUdeviceptr addressOf(const void *device) { return reinterpret_cast<CUdeviceptr>(device); }

} // namespace drt::cuda

#endif // DRT_CUDA_HANDLES_H

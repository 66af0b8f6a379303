//===- machine.h - The emulated devices of this process -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_MACHINE_H
#define DRT_CUDA_EMULATOR_MACHINE_H

#include "cuda/emulator/capture.h"
#include "cuda/emulator/engine.h"
#include "cuda/emulator/failure.h"
#include "cuda/emulator/memory.h"

#include <cuda.h>

#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace drt::cuda::emulated {

/// Handles of one kind: the addresses of the objects, checked.
template <class Object, class Handle> class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    auto handle = reinterpret_cast<Handle>(object.get());
    objects_[handle] = std::move(object);
    return handle;
  }
  const std::shared_ptr<Object> &at(Handle handle) const {
    auto found = objects_.find(handle);
    require(found != objects_.end(), CUDA_ERROR_INVALID_HANDLE, "a handle that is not, or no longer, one");
    return found->second;
  }
  void remove(Handle handle) {
    at(handle);
    objects_.erase(handle);
  }

private:
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

class Module;
struct Kernel;

struct Device {
  int retained = 0;                // contexts
  CUresult failure = CUDA_SUCCESS; // of its work; every call returns it from then on
  std::mutex computing;            // a kernel at a time: a module's shared memory is one for all blocks
  std::vector<WorkPtr> works;      // that may not be done
};

/// All state of the emulated driver. Its functions take the lock themselves; what is called with it says so.
class Machine {
public:
  static Machine &get();

  std::mutex mutex;
  Memory memory; // has a lock of its own
  Engine engine;
  std::vector<std::unique_ptr<Device>> devices;
  size_t deviceBytes = size_t(16) << 30;
  bool initialized = false;

  Handles<Stream, CUstream> streams;
  Handles<Event, CUevent> events;
  Handles<Graph, CUgraph> graphs;
  Handles<GraphExec, CUgraphExec> execs;
  Handles<Module, CUmodule> modules;
  Handles<Kernel, CUfunction> kernels;
  std::set<std::shared_ptr<Capture>> captures; // under way

  /// A context is its device. -1: the thread has none.
  static CUcontext contextOf(int device) { return reinterpret_cast<CUcontext>(static_cast<intptr_t>(device + 1)); }
  static thread_local int current;

  /// The calling thread's device; throws without one, and where the device's work has failed.
  int device();
  Device &deviceAt(int ordinal);
  /// Ends the process where the calling thread's device has no context any more: a library that ends behind its context
  /// frees what is gone, and crashes on a GPU.
  void requireContext(const char *function);

  // With the lock.

  /// Libraries load the kernels of a call at its first time, which a capture forbids.
  void load(Stream &stream, const std::string &call);

  /// Throws while a capture forbids calls that are not enqueued, as cuMemAlloc, and ends the capture.
  void forbidInCapture(const char *function);
  /// A stream of the calling thread's device.
  Stream &stream(CUstream handle);
  /// Any thread may wait for a stream and destroy it.
  Stream &anyStream(CUstream handle);
  void enqueue(Stream &stream, Task task);
  void record(Stream &stream, const std::shared_ptr<Event> &event, bool external);
  void waitFor(Stream &stream, const Event &event);
  void launch(GraphExec &exec, Stream &stream);
  std::shared_ptr<Graph> endCapture(Stream &stream);
  /// Runs everything that was enqueued on it, and throws what went wrong.
  void synchronize(Lock &lock, Stream &stream);
  void wait(Lock &lock, const WorkPtr &work, int device);
  /// Runs everything that was enqueued on the device, whatever comes of it.
  void drain(Lock &lock, int device);

private:
  Machine();
  std::set<std::pair<int, std::string>> loaded; // calls of libraries, by device
  WorkPtr start(const Task &task, int device, const std::vector<WorkPtr> &dependencies);
  void join(Stream &stream, const std::shared_ptr<Capture> &capture, const std::vector<int> &nodes);
};

/// For the emulated libraries: enqueues `run` on a stream; it is given the machine's memory when it runs.
void enqueue(CUstream stream, std::string label, std::function<void(const Memory &memory, int device)> run);

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_MACHINE_H

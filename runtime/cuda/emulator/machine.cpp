//===- machine.cpp - The emulated devices of this process -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/machine.h"

#include "cuda/emulator/module.h"
#include "cuda/emulator/testing.h"

#include <cstdio>
#include <cstdlib>

using namespace drt::cuda::emulated;

thread_local int Machine::current = -1;

namespace {
uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}
} // namespace

Machine &Machine::get() {
  // Never destroyed: threads that outlive main may still be in it.
  static Machine *machine = new Machine();
  return *machine;
}

Machine::Machine()
    : engine({[this](int device) { return devices[static_cast<size_t>(device)]->failure != CUDA_SUCCESS; },
              [this](const Work &work, std::exception_ptr thrown) {
                CUresult &failure = devices[static_cast<size_t>(work.device)]->failure;
                try {
                  std::rethrow_exception(thrown);
                } catch (const Failure &reason) {
                  failure = reason.code;
                  remember(Failure(reason.code, work.label + ": " + reason.what()));
                } catch (const std::exception &reason) {
                  failure = CUDA_ERROR_LAUNCH_FAILED;
                  remember(Failure(failure, work.label + ": " + reason.what()));
                }
              }}) {
  for (uint64_t i = 0; i < environment("DRT_EMULATED_DEVICES", 8); ++i)
    devices.push_back(std::make_unique<Device>());
  engine.seed(environment("DRT_EMULATED_SEED", 1));
}

Device &Machine::deviceAt(int ordinal) {
  require(initialized, CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
  require(ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size(), CUDA_ERROR_INVALID_DEVICE,
          "there is no device with this number");
  return *devices[static_cast<size_t>(ordinal)];
}

void Machine::requireContext(const char *function) {
  Lock lock(mutex);
  if (current >= 0 && deviceAt(current).retained > 0)
    return;
  std::fprintf(stderr, "emulated CUDA: %s behind the end of its context\n", function);
  std::abort();
}

void Machine::load(Stream &stream, const std::string &call) {
  if (!stream.capture) {
    loaded.insert({stream.device, call});
    return;
  }
  if (loaded.count({stream.device, call}))
    return;
  stream.capture->invalid = true;
  throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call + " is called for the first time, and loads its kernels, "
                                                              "during a capture");
}

int Machine::device() {
  require(initialized, CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
  require(current >= 0, CUDA_ERROR_INVALID_CONTEXT, "the thread has no context: cuCtxSetCurrent");
  Device &device = deviceAt(current);
  require(device.retained > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the device's context was released");
  if (device.failure != CUDA_SUCCESS)
    throw Failure(device.failure, messageOf(device.failure));
  return current;
}

Stream &Machine::anyStream(CUstream handle) {
  device();
  require(handle != nullptr, CUDA_ERROR_INVALID_HANDLE, "the emulator has no default stream");
  return *streams.at(handle);
}

Stream &Machine::stream(CUstream handle) {
  Stream &stream = anyStream(handle);
  require(stream.device == current, CUDA_ERROR_INVALID_HANDLE, "the stream is another device's");
  return stream;
}

WorkPtr Machine::start(const Task &task, int device, const std::vector<WorkPtr> &dependencies) {
  WorkPtr work = engine.add(task.label, device, task.make ? task.make() : Run(), dependencies);
  std::vector<WorkPtr> &works = devices[static_cast<size_t>(device)]->works;
  std::erase_if(works, [](const WorkPtr &old) { return old->done; });
  works.push_back(work);
  if (task.event) {
    task.event->work = work;
    task.event->recorded = true;
    task.event->capture = nullptr;
  }
  return work;
}

void Machine::enqueue(Stream &stream, Task task) {
  if (!stream.capture) {
    stream.last = start(task, stream.device, {stream.last});
    return;
  }
  require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error ended the capture");
  Graph &graph = *stream.capture->graph;
  graph.nodes.push_back({std::move(task), stream.device, stream.captured});
  stream.captured = {static_cast<int>(graph.nodes.size()) - 1};
}

void Machine::launch(GraphExec &exec, Stream &stream) {
  require(!stream.capture, CUDA_ERROR_NOT_SUPPORTED, "the emulator launches no graph within a capture");
  WorkPtr begin = engine.add("graph begins", stream.device, {}, {stream.last, exec.last});
  std::vector<WorkPtr> works;
  for (const Node &node : exec.graph->nodes) {
    std::vector<WorkPtr> before = {begin};
    for (int dependency : node.dependencies)
      before.push_back(works[static_cast<size_t>(dependency)]);
    works.push_back(start(node.task, node.device, before));
  }
  works.push_back(begin);
  stream.last = exec.last = engine.add("graph ends", stream.device, {}, works);
}

void Machine::wait(Lock &lock, const WorkPtr &work, int device) {
  WorkPtr awaited = work; // the stream may go on meanwhile
  engine.wait(lock, awaited);
  CUresult failure = deviceAt(device).failure;
  if (failure != CUDA_SUCCESS)
    throw Failure(failure, messageOf(failure));
}

void Machine::drain(Lock &lock, int device) {
  std::vector<WorkPtr> works = deviceAt(device).works;
  for (const WorkPtr &work : works)
    engine.wait(lock, work);
}

void Machine::synchronize(Lock &lock, Stream &stream) {
  if (stream.capture) {
    stream.capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream that is captured cannot be waited for");
  }
  wait(lock, stream.last, stream.device);
}

void drt::cuda::emulated::enqueue(CUstream handle, std::string label, std::function<void(const Memory &, int)> run) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  Stream &stream = machine.stream(handle);
  machine.load(stream, label);
  auto shared = std::make_shared<decltype(run)>(std::move(run));
  machine.enqueue(stream, {std::move(label),
                           [&machine, shared, device = stream.device] {
                             return [&machine, shared, device] {
                               (*shared)(machine.memory, device);
                               return Progress::Done;
                             };
                           },
                           nullptr});
}

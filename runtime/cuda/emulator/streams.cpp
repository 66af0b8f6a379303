//===- streams.cpp - libcuda: streams, events and graphs ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/driver.h"

#include "cuda/emulator/machine.h"
#include "cuda/emulator/module.h"

#include <chrono>

namespace drt::cuda::emulated {
namespace {
struct Locked {
  Machine &machine = Machine::get();
  Lock lock{machine.mutex};
};
} // namespace

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned, int priority) {
  Locked with;
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the stream");
  auto stream = std::make_shared<Stream>();
  stream->device = with.machine.device();
  stream->priority = priority;
  *handle = with.machine.streams.add(std::move(stream));
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  Locked with;
  Stream &stream = with.machine.anyStream(handle);
  if (stream.capture) {
    stream.capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream that is captured cannot be destroyed");
  }
  with.machine.streams.remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  Locked with;
  Stream &stream = with.machine.anyStream(handle);
  if (!stream.capture)
    with.machine.forbidInCapture("cuStreamSynchronize");
  with.machine.synchronize(with.lock, stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
  Locked with;
  Stream &stream = with.machine.anyStream(handle);
  if (stream.capture)
    with.machine.synchronize(with.lock, stream); // throws
  with.machine.forbidInCapture("cuStreamQuery");
  with.machine.engine.poll(with.lock);
  with.machine.device();
  return !stream.last || stream.last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  Locked with;
  with.machine.waitFor(with.machine.stream(handle), *with.machine.events.at(event));
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  Locked with;
  Stream &stream = with.machine.stream(handle);
  require(!stream.capture, CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already");
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams.insert(&stream);
  stream.capture = capture;
  stream.captured.clear();
  with.machine.captures.insert(capture);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  Locked with;
  require(graph != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the graph");
  *graph = nullptr;
  *graph = with.machine.graphs.add(with.machine.endCapture(with.machine.stream(handle)));
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  Locked with;
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the event");
  auto event = std::make_shared<Event>();
  event->device = with.machine.device();
  event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *handle = with.machine.events.add(std::move(event));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Locked with;
  with.machine.events.remove(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  Locked with;
  with.machine.record(with.machine.stream(stream), with.machine.events.at(event),
                      (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return emulated::cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

static Event &eventToAsk(Locked &with, CUevent handle, const char *function) {
  with.machine.device();
  Event &event = *with.machine.events.at(handle);
  with.machine.forbidInCapture(function);
  require(!event.capture, CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture");
  return event;
}

CUresult cuEventQuery(CUevent handle) {
  Locked with;
  Event &event = eventToAsk(with, handle, "cuEventQuery");
  with.machine.engine.poll(with.lock);
  with.machine.device();
  return !event.work || event.work->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  Locked with;
  Event &event = eventToAsk(with, handle, "cuEventSynchronize");
  with.machine.wait(with.lock, event.work, event.device);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to) {
  Locked with;
  Event &first = eventToAsk(with, from, "cuEventElapsedTime"), &last = eventToAsk(with, to, "cuEventElapsedTime");
  require(milliseconds != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the time");
  require(first.timing && last.timing && first.recorded && last.recorded, CUDA_ERROR_INVALID_HANDLE,
          "an event without timing, or that was never recorded");
  if (!first.work->done || !last.work->done)
    return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(last.work->end - first.work->end).count();
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  Locked with;
  require(exec != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the graph");
  with.machine.device();
  auto made = std::make_shared<GraphExec>();
  made->graph = std::make_shared<const Graph>(*with.machine.graphs.at(graph));
  *exec = with.machine.execs.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Locked with;
  with.machine.launch(*with.machine.execs.at(exec), with.machine.stream(stream));
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Locked with;
  with.machine.execs.remove(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Locked with;
  with.machine.graphs.remove(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  Locked with;
  require(count != nullptr && nodes == nullptr, CUDA_ERROR_NOT_SUPPORTED, "the emulator only counts the nodes");
  *count = with.machine.graphs.at(graph)->nodes.size();
  return CUDA_SUCCESS;
}

} // namespace drt::cuda::emulated

//===- capture.cpp - Streams become graphs --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/machine.h"

#include <algorithm>

using namespace drt::cuda::emulated;

bool Capture::reaches(const std::vector<int> &from, const std::vector<int> &of) const {
  // Nodes depend on earlier ones only.
  std::vector<bool> reached(graph->nodes.size());
  for (int node : from)
    reached[static_cast<size_t>(node)] = true;
  for (size_t i = reached.size(); i-- > 0;)
    if (reached[i])
      for (int dependency : graph->nodes[i].dependencies)
        reached[static_cast<size_t>(dependency)] = true;
  return std::all_of(of.begin(), of.end(), [&](int node) { return reached[static_cast<size_t>(node)]; });
}

void Machine::forbidInCapture(const char *function) {
  for (auto &capture : captures) {
    bool own = capture->thread == std::this_thread::get_id();
    bool strict =
        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || (own && capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (!strict)
      continue;
    capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, std::string(function) + " during a capture");
  }
}

// The nodes join those that the stream's next one depends on.
void Machine::join(Stream &stream, const std::shared_ptr<Capture> &capture, const std::vector<int> &nodes) {
  require(!capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error ended the capture");
  if (stream.capture && stream.capture != capture) {
    stream.capture->invalid = capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_MERGE, "an event of one capture in another");
  }
  stream.capture = capture;
  capture->streams.insert(&stream);
  for (int node : nodes)
    if (std::find(stream.captured.begin(), stream.captured.end(), node) == stream.captured.end())
      stream.captured.push_back(node);
}

void Machine::record(Stream &stream, const std::shared_ptr<Event> &event, bool external) {
  require(stream.device == event->device, CUDA_ERROR_INVALID_HANDLE, "the event is another device's than the stream");
  if (!stream.capture || external)
    return enqueue(stream, {"event", nullptr, event});
  require(!stream.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error ended the capture");
  event->capture = stream.capture;
  event->captured = stream.captured;
}

void Machine::waitFor(Stream &stream, const Event &event) {
  if (event.capture)
    return join(stream, event.capture, event.captured);
  if (!event.recorded)
    return;
  if (stream.capture) {
    stream.capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a capture waits for an event that was recorded before it");
  }
  stream.last = engine.add("wait for an event", stream.device, {}, {stream.last, event.work});
}

std::shared_ptr<Graph> Machine::endCapture(Stream &stream) {
  std::shared_ptr<Capture> capture = stream.capture;
  require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
  require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream");
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread");
  bool joined = true;
  for (Stream *member : capture->streams)
    joined = joined && capture->reaches(stream.captured, member->captured);
  for (Stream *member : capture->streams) {
    member->capture = nullptr;
    member->captured.clear();
  }
  captures.erase(capture);
  require(!capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error ended the capture");
  capture->invalid = true; // its events lead nowhere from here on
  require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work on another stream was not joined by an event");
  return std::move(capture->graph);
}

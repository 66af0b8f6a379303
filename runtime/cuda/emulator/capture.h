//===- capture.h - Streams, events, captures and graphs of the emulator ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What CUDA's manual says of them ("CUDA Graphs", "Stream Management"). Everything under the machine's lock.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_CAPTURE_H
#define DRT_CUDA_EMULATOR_CAPTURE_H

#include "cuda/emulator/engine.h"

#include <cuda.h>

#include <set>
#include <thread>

namespace drt::cuda::emulated {

struct Event;

/// What is asked of a stream: run once, or recorded in a graph and run at each of its launches.
struct Task {
  std::string label;
  /// Makes what one launch runs; called when it is enqueued.
  std::function<Run()> make;
  /// Events are told of the work that they stand for. Null for others.
  std::shared_ptr<Event> event;
};

struct Node {
  Task task;
  int device;
  std::vector<int> dependencies; // nodes
};

struct Graph {
  std::vector<Node> nodes;
};

/// A graph in the making.
struct Stream;
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  CUstreamCaptureMode mode;
  std::thread::id thread;
  Stream *origin;
  std::set<Stream *> streams; // that take part
  bool invalid = false;

  /// Whether every node of `of` is one of `from` or behind one of them.
  bool reaches(const std::vector<int> &from, const std::vector<int> &of) const;
};

struct Stream {
  int device;
  int priority = 0;
  WorkPtr last;
  std::shared_ptr<Capture> capture; // null: none
  std::vector<int> captured;        // the nodes that the next one depends on
};

struct Event {
  int device;
  bool timing;
  WorkPtr work;                     // null: complete
  bool recorded = false;            // ever, outside of a capture
  std::shared_ptr<Capture> capture; // null unless last recorded in one
  std::vector<int> captured;
};

struct GraphExec {
  std::shared_ptr<const Graph> graph;
  WorkPtr last; // launches of a graph follow each other
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_CAPTURE_H

//===- stream_communicator.h - Collectives over streams of our own --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Between hosts whose connections are encrypted: gloo's cannot be. Each task has a stream to each other; a collective
// sends and receives over several of them at once, in the calling thread, which polls.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_STREAM_COMMUNICATOR_H
#define DRT_COLLECTIVES_STREAM_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/progress.h"
#include "collectives/stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace drt {

/// Streams between tasks. Every task asks for its ends at the same time.
class StreamMesh {
public:
  virtual ~StreamMesh() = default;
  /// One to each of `peers`, which may name a task several times, in that order. Throws Error.
  virtual std::vector<std::shared_ptr<Stream>> connect(const std::vector<int> &peers) = 0;
};

struct StreamOptions {
  int rank = 0, size = 1;
  std::unique_ptr<StreamMesh> mesh;
  /// As GlooOptions::explain.
  std::function<std::string(const std::string &error)> explain;
};

/// Connects every task to every other one. All tasks call it at the same time; progress outlives the communicator.
std::unique_ptr<Communicator> make_stream_communicator(StreamOptions options, Progress &progress);

} // namespace drt

#endif // DRT_COLLECTIVES_STREAM_COMMUNICATOR_H

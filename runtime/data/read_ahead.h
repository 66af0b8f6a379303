//===- read_ahead.h - Batches that a thread makes before they are asked for --===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_READ_AHEAD_H
#define DRT_DATA_READ_AHEAD_H

#include "core/delays.h"
#include "core/timeline.h"

#include <sched.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace drt {

/// A thread of its own fills buffers with the batches that follow the one that was asked for.
class ReadAhead {
public:
  struct Config {
    int64_t bytes = 0; // of a batch
    /// Which step's batch follows that of a step.
    std::function<int64_t(int64_t step)> next;
    /// Where the thread may run; nothing: where its creator does.
    std::optional<cpu_set_t> cores;
    TimelineRow *timeline = nullptr; // null: none. Not owned
    uint64_t delays = 0;             // tells this thread from others (core/delays.h)
  };
  /// Makes the batch of a step. Called in the thread; what it throws is thrown again by get.
  using Fill = std::function<void(int64_t step, char *batch)>;

  ReadAhead(Config config, Fill fill);
  ~ReadAhead();
  ReadAhead(const ReadAhead &) = delete;
  ReadAhead &operator=(const ReadAhead &) = delete;

  /// The batch of a step, readable until the next call. Waits where it is not there yet.
  const char *get(int64_t step);

private:
  struct Batch {
    std::vector<char> bytes;
    std::exception_ptr error;
  };
  void run();

  const Config config_;
  const Fill fill_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Batch>> free_, ready_;
  std::unique_ptr<Batch> given_;
  int64_t expected_ = -1; // the step that is asked for next, if the order is kept
  int64_t making_ = 0;    // the step whose batch the thread makes next
  uint64_t round_ = 0;    // counts departures from the order: what was begun before one is thrown away
  bool begun_ = false, quit_ = false;
  std::thread thread_;
};

} // namespace drt

#endif // DRT_DATA_READ_AHEAD_H

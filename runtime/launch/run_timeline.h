//===- run_timeline.h - The timeline of a run, of all its tasks -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// --timeline F: task 0 writes one file. The others hand it their events at their end, in parts that it asks for, over
// the control connection, with times on task 0's clock (clock_alignment.h). Task 0 has one part at a time in memory.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_RUN_TIMELINE_H
#define DRT_LAUNCH_RUN_TIMELINE_H

#include "core/timeline.h"
#include "launch/group.h"
#include "launch/tasks.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace drt {

class RunTimeline {
public:
  /// The file's times begin here: before any task has done anything. `path`: "" where none was asked for. `run`: what
  /// starts of the same run have in common. `tasks`: the group's, of which this is `rank`. `group`: null where there is
  /// one task; outlives it.
  RunTimeline(std::string path, std::string run, std::vector<Task> tasks, int rank, Group *group);

  /// Every task calls it when its steps are done. `goesOnAt`: of a run that was started before, the step of this start;
  /// what the file has of those before it stays. Throws Error where the file cannot be written.
  void write(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt = {});

  /// The same where the run has failed: what those tasks that are left have done. Nothing where that has been written,
  /// or nothing was done. Any thread, while others are at work; soon over.
  void writeAfterFailure(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt = {}) noexcept;

private:
  void writeOnce(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt);
  void handOver(const std::vector<const TimelineRow *> &rows);
  void gather(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt);
  int32_t processOf(int task) const;
  std::string nameOf(int task) const;

  const std::string path_, run_;
  const std::vector<Task> tasks_;
  const int rank_;
  Group *const group_;
  const int64_t originNs_ = nowNs();
  std::mutex mutex_; // of who writes
  bool isDone_ = false;
};

} // namespace drt

#endif // DRT_LAUNCH_RUN_TIMELINE_H

//===- run_timeline.cpp - The timeline of a run, of all its tasks ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/run_timeline.h"

#include "core/error.h"
#include "core/growing_file.h"
#include "launch/earlier_timeline.h"
#include "launch/same_host.h"
#include "launch/timeline_parts.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <unistd.h>

namespace drt {
namespace {

std::string machineName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string microseconds(int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) * 1e-3);
  return text;
}

} // namespace

RunTimeline::RunTimeline(std::string path, std::string run, std::vector<Task> tasks, int rank, Group *group)
    : path_(std::move(path)), run_(std::move(run)), tasks_(std::move(tasks)), rank_(rank), group_(group) {}

void RunTimeline::write(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt) {
  const std::lock_guard lock(mutex_);
  writeOnce(rows, goesOnAt);
}

void RunTimeline::writeOnce(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt) {
  if (path_.empty() || isDone_)
    return;
  isDone_ = true;
  if (rank_ == 0)
    gather(rows, goesOnAt);
  else
    handOver(rows);
}

void RunTimeline::writeAfterFailure(const std::vector<const TimelineRow *> &rows,
                                    std::optional<int64_t> goesOnAt) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const bool isEmpty =
        std::all_of(rows.begin(), rows.end(), [](const TimelineRow *row) { return row->events().empty(); });
    if (!isEmpty)
      writeOnce(rows, goesOnAt);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "note: there is no timeline of the run that failed: %s\n", error.what());
  }
}

void RunTimeline::handOver(const std::vector<const TimelineRow *> &rows) {
  TimelinePacker packer(rows, group_->clock(), machineName());
  for (std::string part = packer.next(); !part.empty(); part = packer.next())
    if (!group_->hand_over(part))
      return; // task 0 says so, or is gone
}

void RunTimeline::gather(const std::vector<const TimelineRow *> &rows, std::optional<int64_t> goesOnAt) {
  // Times of another clock, or of another run that wrote to the same file, have no place beside these.
  const std::string clock = clock_identity(), run = clock.empty() ? "" : run_ + ", " + clock;
  const std::optional<EarlierTimeline> earlier =
      goesOnAt ? EarlierTimeline::find(path_, run) : std::optional<EarlierTimeline>();
  TimelineWriter writer(path_, earlier ? earlier->originNs() : originNs_, run);
  std::string others = "{\"clock\":" + jsonString(tasks_[0].name()) + ",\"tasks\":[";
  for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
    const Task &named = tasks_[static_cast<size_t>(task)];
    writer.process(processOf(task), nameOf(task));
    TimelineUnpacker unpacker(writer, processOf(task));
    std::string why = "it has ended, or does not answer";
    try {
      if (task == 0) {
        TimelinePacker packer(rows, ClockAlignment::shared(), machineName());
        for (std::string part = packer.next(); !part.empty(); part = packer.next())
          unpacker.take(part);
      }
      while (!unpacker.summary()) {
        const std::optional<std::string> part = group_->fetch(task);
        if (!part)
          break;
        unpacker.take(*part);
      }
    } catch (const MalformedPart &error) {
      why = error.what();
    }
    const TimelineSummary summary = unpacker.summary().value_or(TimelineSummary());
    others += std::string(task ? "," : "") + "\n{\"task\":" + jsonString(named.name()) +
              ",\"host\":" + jsonString(named.host) + ",\"machine\":" + jsonString(summary.machine) +
              ",\"pid\":" + std::to_string(processOf(task)) + ",\"events\":" + std::to_string(unpacker.events()) +
              ",\"complete\":" + (unpacker.summary() ? "true" : "false") +
              ",\"clock\":" + jsonString(drt::nameOf(summary.clock)) +
              ",\"ahead_us\":" + microseconds(summary.aheadNs) +
              ",\"uncertainty_us\":" + microseconds(summary.uncertaintyNs) + "}";
    if (!unpacker.summary())
      std::fprintf(stderr, "note: the timeline %s has %s events of %s: %s\n", path_.c_str(),
                   unpacker.events() ? "only a part of the" : "no", nameOf(task).c_str(), why.c_str());
    else if (summary.clock == ClockAlignment::Kind::Unknown)
      std::fprintf(stderr,
                   "note: the clock of %s could not be compared: its events in the timeline %s have its own times\n",
                   nameOf(task).c_str(), path_.c_str());
  }
  others += "\n]";
  if (earlier)
    if (const std::string tasks = earlier->copyTo(writer, *goesOnAt); !tasks.empty())
      others += ",\"earlier\":[" + tasks.substr(1) + "\n]";
  writer.publish(others + "}");
}

/// A worker of an elastic run has its own number in every group.
int32_t RunTimeline::processOf(int task) const { return group_ ? group_->members()[static_cast<size_t>(task)] : task; }

std::string RunTimeline::nameOf(int task) const {
  const Task &named = tasks_[static_cast<size_t>(task)];
  return named.name() + " (" + named.host + ")";
}

} // namespace drt

//===- timeline_parts.h - A task's timeline on its way to task 0 ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A part is a sequence of records, little-endian: a byte that says what it is, then
//   R  a row: number (4), label
//   N  a name of events, which are numbered from 0: name, category
//   E  an event: its row's number (4), its name's (4), begin, end (8 each, nanoseconds on task 0's clock), step (8)
//   T  last of all, the task: its machine's name, how its clock was compared (1), what that is ahead of task 0's and by
//      how much times may be wrong (8 each, nanoseconds)
// A text is its length (4) and its bytes. No record is in two parts.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_TIMELINE_PARTS_H
#define DRT_LAUNCH_TIMELINE_PARTS_H

#include "core/error.h"
#include "core/timeline.h"
#include "launch/clock_alignment.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace drt {

/// What another task has sent is no part.
class MalformedPart : public Error {
public:
  using Error::Error;
};

/// What a task's timeline says of itself.
struct TimelineSummary {
  std::string machine; // its host's own name
  ClockAlignment::Kind clock = ClockAlignment::Kind::Unknown;
  int64_t aheadNs = 0, uncertaintyNs = 0; // of its clock, at the last event
};

/// Cuts the rows of a task into parts. The rows outlive it.
class TimelinePacker {
public:
  TimelinePacker(std::vector<const TimelineRow *> rows, ClockAlignment clock, std::string machine);
  /// The next part, of 128 KiB about; empty behind the last one.
  std::string next();

private:
  uint32_t numberOf(std::string &part, const TimelineRow::Event &event);

  const std::vector<const TimelineRow *> rows_;
  const ClockAlignment clock_;
  const std::string machine_;
  std::map<std::pair<const char *, const char *>, uint32_t> names_; // and categories
  std::vector<TimelineRow::Event> events_;                          // of the row before nextRow_
  size_t nextRow_ = 0, nextEvent_ = 0;
  int64_t firstNs_ = INT64_MAX, lastNs_ = INT64_MIN;
  bool ended_ = false;
};

/// Puts a task's parts into the file.
class TimelineUnpacker {
public:
  /// `writer` outlives it.
  TimelineUnpacker(TimelineWriter &writer, int32_t pid) : writer_(writer), pid_(pid) {}
  /// Throws MalformedPart where the bytes are none; what is in front of the wrong record is in the file then.
  void take(std::string_view part);

  int64_t events() const { return events_; }
  /// Nothing until the last part has come.
  const std::optional<TimelineSummary> &summary() const { return summary_; }

private:
  TimelineWriter &writer_;
  const int32_t pid_;
  std::vector<std::pair<std::string, std::string>> names_; // and categories
  int64_t events_ = 0;
  std::optional<TimelineSummary> summary_;
};

} // namespace drt

#endif // DRT_LAUNCH_TIMELINE_PARTS_H

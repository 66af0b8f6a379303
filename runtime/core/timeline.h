//===- timeline.h - When each piece of work ran, as a Chrome trace --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_TIMELINE_H
#define DRT_CORE_TIMELINE_H

#include "checkpoint/output_file.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drt {

/// Nanoseconds on the monotonic clock.
inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/// What one thread did. The newest events are kept, older ones are overwritten, so that a long run costs no more memory
/// than a short one. One thread writes; any may read meanwhile.
class TimelineRow {
public:
  struct Event {
    const char *name; // not owned, outlives the row
    const char *category;
    int64_t beginNs, endNs;
    int64_t step;
  };

  /// Events that a row keeps.
  static constexpr int64_t most = 1 << 16;

  TimelineRow(std::string label, int32_t number, int64_t capacity = most)
      : label_(std::move(label)), number_(number), kept_(static_cast<size_t>(capacity) + 1) {}

  void begin(const char *name, const char *category, int64_t step) {
    if (depth_ < maxDepth)
      open_[depth_] = {name, category, nowNs(), 0, step};
    ++depth_;
  }
  void end() {
    if (depth_ > 0 && --depth_ < maxDepth) {
      open_[depth_].endNs = nowNs();
      add(open_[depth_]);
    }
  }
  /// What another clock has measured.
  void add(const Event &event);

  const std::string &label() const { return label_; }
  int32_t number() const { return number_; }

  /// The events that are still kept, oldest first by their end.
  std::vector<Event> events() const;

private:
  // Who reads while a slot is written takes it for none (events()).
  struct Slot {
    std::atomic<const char *> name, category;
    std::atomic<int64_t> beginNs, endNs, step;
  };
  static constexpr int maxDepth = 8;
  std::string label_;
  int32_t number_;
  std::vector<Slot> kept_; // and one that may just be written
  std::atomic<size_t> count_ = 0;
  Event open_[maxDepth];
  int depth_ = 0;
};

/// Writes a Chrome trace (chrome://tracing, Perfetto), aside, and renames it when it is published; a line an event.
/// Times are those of one clock. Everything throws drt::Error.
class TimelineWriter {
public:
  /// The file has microseconds since `originNs`. `run`: what tells the run, and that clock, from others.
  TimelineWriter(const std::string &path, int64_t originNs, const std::string &run = "");
  /// The rows of `pid` are this task's.
  void process(int32_t pid, const std::string &name);
  void row(int32_t pid, int32_t number, const std::string &label);
  void event(int32_t pid, int32_t row, std::string_view name, std::string_view category, int64_t beginNs, int64_t endNs,
             int64_t step);
  /// `otherData`: a JSON object, what else there is to say of the trace.
  void publish(const std::string &otherData);

  // ---- What another file of the same origin has (launch/earlier_timeline.h): names are JSON already -----------------

  static constexpr std::string_view originKey = "\"origin_ns\":";
  /// The first line.
  static std::string head(int64_t originNs, const std::string &run);
  /// The same unless the process has a name.
  void processNamed(int32_t pid, const std::string &json);
  /// The number of the row of that label, which is made where there is none.
  int32_t rowNamed(int32_t pid, const std::string &json);
  /// The line of an event, of another row.
  void copyEvent(std::string_view line, int32_t pid, int32_t oldRow, int32_t row);
  /// So far.
  int64_t eventsOf(int32_t pid, int32_t row) const;

private:
  void write(std::string_view text);
  void line(std::string_view text);
  void metadata(const char *what, int32_t pid, int32_t row, const std::string &arguments);

  OutputFile file_;
  const int64_t originNs_;
  std::set<int32_t> processes_;
  std::map<std::pair<int32_t, std::string>, int32_t> rows_;     // by their labels
  std::map<std::pair<int32_t, int32_t>, int64_t> eventsOfRows_; // by their numbers
  bool isFirst_ = true;
};

} // namespace drt

#endif // DRT_CORE_TIMELINE_H

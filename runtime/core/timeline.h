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
#include <string>
#include <string_view>
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

  TimelineRow(std::string label, int32_t number, int64_t capacity = 1 << 16)
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

/// Writes a Chrome trace (chrome://tracing, Perfetto), aside, and renames it when it is published. Times are those of
/// one clock. Everything throws drt::Error.
class TimelineWriter {
public:
  /// The file has microseconds since `originNs`.
  TimelineWriter(const std::string &path, int64_t originNs);
  /// The rows of `pid` are this task's.
  void process(int32_t pid, const std::string &name);
  void row(int32_t pid, int32_t number, const std::string &label);
  void event(int32_t pid, int32_t row, std::string_view name, std::string_view category, int64_t beginNs, int64_t endNs,
             int64_t step);
  /// `otherData`: a JSON object, what else there is to say of the trace.
  void publish(const std::string &otherData);

private:
  void write(const std::string &text);
  void metadata(const char *what, int32_t pid, int32_t row, const std::string &arguments);

  OutputFile file_;
  const int64_t originNs_;
  bool isFirst_ = true;
};

} // namespace drt

#endif // DRT_CORE_TIMELINE_H

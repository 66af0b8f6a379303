//===- timeline.h - When each piece of work ran, as a Chrome trace --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_TIMELINE_H
#define DRT_CORE_TIMELINE_H

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace drt {

/// Nanoseconds on the monotonic clock.
inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/// What one thread did. The newest events are kept, older ones are overwritten, so
/// that a long run costs no more memory than a short one. One thread writes; it is
/// read when that thread is at rest.
class TimelineRow {
public:
  struct Event {
    const char *name; // not owned, outlives the row
    const char *category;
    int64_t beginNs, endNs;
    int64_t step;
  };

  TimelineRow(std::string label, int32_t number, int64_t capacity = 1 << 16)
      : label_(std::move(label)), number_(number), events_(capacity) {}

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
  void add(const Event &event) { events_[count_++ % events_.size()] = event; }

  const std::string &label() const { return label_; }
  int32_t number() const { return number_; }

  /// The events that are still kept, oldest first by their end.
  std::vector<Event> events() const;

private:
  static constexpr int maxDepth = 8;
  std::string label_;
  int32_t number_;
  std::vector<Event> events_;
  size_t count_ = 0;
  Event open_[maxDepth];
  int depth_ = 0;
};

/// Writes rows as one Chrome trace (chrome://tracing, Perfetto) to `path`, aside
/// and renamed; times in microseconds since `originNs`; `process` is what the
/// rows' common process is called, `pid` its number. Throws drt::Error.
void writeTimeline(const std::string &path, const std::string &process, int32_t pid, int64_t originNs,
                   const std::vector<const TimelineRow *> &rows);

} // namespace drt

#endif // DRT_CORE_TIMELINE_H

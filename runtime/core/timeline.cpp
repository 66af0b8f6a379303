//===- timeline.cpp - When each piece of work ran, as a Chrome trace ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/timeline.h"
#include "checkpoint/output_file.h"
#include "core/growing_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace drt {
namespace {

std::string metadata(const char *what, int32_t pid, int32_t row, const std::string &name) {
  return std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(row) + ",\"args\":{\"name\":" + jsonString(name) + "}}";
}

} // namespace

std::vector<TimelineRow::Event> TimelineRow::events() const {
  if (count_ <= events_.size())
    return {events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count_)};
  std::vector<Event> kept(events_);
  std::rotate(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count_ % events_.size()), kept.end());
  return kept;
}

void writeTimeline(const std::string &path, const std::string &process, int32_t pid, int64_t originNs,
                   const std::vector<const TimelineRow *> &rows) {
  OutputFile file(path);
  const auto write = [&file](const std::string &text) { file.write(text.data(), text.size()); };
  write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + metadata("process_name", pid, 0, process));
  for (const TimelineRow *row : rows) {
    write(",\n" + metadata("thread_name", pid, row->number(), row->label()));
    for (const TimelineRow::Event &event : row->events()) {
      char times[160];
      std::snprintf(times, sizeof times,
                    ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%" PRId64 "}}",
                    pid, row->number(), static_cast<double>(event.beginNs - originNs) * 1e-3,
                    static_cast<double>(event.endNs - event.beginNs) * 1e-3, event.step);
      write(",\n{\"name\":" + jsonString(event.name) + ",\"cat\":" + jsonString(event.category) + times);
    }
  }
  write("\n]}\n");
  file.publish();
}

} // namespace drt

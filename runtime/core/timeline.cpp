//===- timeline.cpp - When each piece of work ran, as a Chrome trace ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/timeline.h"
#include "core/growing_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace drt {

// A reader that sees anything of event n sees n events at least: the fence is between their number and what is written
// behind it, as in a sequence lock (Boehm, "Can Seqlocks Get Along with Programming Language Memory Models?", 2012).
void TimelineRow::add(const Event &event) {
  const size_t count = count_.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  Slot &slot = kept_[count % kept_.size()];
  slot.name.store(event.name, std::memory_order_relaxed);
  slot.category.store(event.category, std::memory_order_relaxed);
  slot.beginNs.store(event.beginNs, std::memory_order_relaxed);
  slot.endNs.store(event.endNs, std::memory_order_relaxed);
  slot.step.store(event.step, std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_release);
}

std::vector<TimelineRow::Event> TimelineRow::events() const {
  const size_t end = count_.load(std::memory_order_acquire);
  const size_t begin = end - std::min(end, kept_.size());
  std::vector<Event> events;
  events.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) {
    const Slot &slot = kept_[i % kept_.size()];
    events.push_back({slot.name.load(std::memory_order_relaxed), slot.category.load(std::memory_order_relaxed),
                      slot.beginNs.load(std::memory_order_relaxed), slot.endNs.load(std::memory_order_relaxed),
                      slot.step.load(std::memory_order_relaxed)});
  }
  // Those that have been overwritten meanwhile, with the one that may just be.
  std::atomic_thread_fence(std::memory_order_acquire);
  const size_t next = count_.load(std::memory_order_relaxed) + 1;
  const size_t lost = std::clamp(next - std::min(next, kept_.size()), begin, end) - begin;
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(lost));
  return events;
}

TimelineWriter::TimelineWriter(const std::string &path, int64_t originNs) : file_(path), originNs_(originNs) {
  write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void TimelineWriter::write(const std::string &text) { file_.write(text.data(), text.size()); }

void TimelineWriter::metadata(const char *what, int32_t pid, int32_t row, const std::string &arguments) {
  write((isFirst_ ? "\n" : ",\n") + std::string("{\"ph\":\"M\",\"name\":\"") + what +
        "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(row) + ",\"args\":{" + arguments + "}}");
  isFirst_ = false;
}

void TimelineWriter::process(int32_t pid, const std::string &name) {
  metadata("process_name", pid, 0, "\"name\":" + jsonString(name));
  metadata("process_sort_index", pid, 0, "\"sort_index\":" + std::to_string(pid));
}

void TimelineWriter::row(int32_t pid, int32_t number, const std::string &label) {
  metadata("thread_name", pid, number, "\"name\":" + jsonString(label));
}

void TimelineWriter::event(int32_t pid, int32_t row, std::string_view name, std::string_view category, int64_t beginNs,
                           int64_t endNs, int64_t step) {
  const auto microseconds = [](int64_t from, int64_t to) { return static_cast<double>(to - from) * 1e-3; };
  char times[160];
  std::snprintf(times, sizeof times,
                ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%" PRId64 "}}", pid,
                row, microseconds(originNs_, beginNs), microseconds(beginNs, endNs), step);
  write((isFirst_ ? "\n" : ",\n") + std::string("{\"name\":") + jsonString(name) + ",\"cat\":" + jsonString(category) +
        times);
  isFirst_ = false;
}

void TimelineWriter::publish(const std::string &otherData) {
  write("\n],\"otherData\":" + otherData + "}\n");
  file_.publish();
}

} // namespace drt

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
#include <iterator>

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

std::string TimelineWriter::head(int64_t originNs, const std::string &run) {
  return "{\"displayTimeUnit\":\"ns\",\"begin\":{\"run\":" + jsonString(run) + "," + std::string(originKey) +
         std::to_string(originNs) + "},\"traceEvents\":[";
}

TimelineWriter::TimelineWriter(const std::string &path, int64_t originNs, const std::string &run)
    : file_(path), originNs_(originNs) {
  write(head(originNs, run));
}

void TimelineWriter::write(std::string_view text) { file_.write(text.data(), text.size()); }

void TimelineWriter::line(std::string_view text) {
  write(isFirst_ ? "\n" : ",\n");
  write(text);
  isFirst_ = false;
}

void TimelineWriter::metadata(const char *what, int32_t pid, int32_t row, const std::string &arguments) {
  line(std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(pid) +
       ",\"tid\":" + std::to_string(row) + ",\"args\":{" + arguments + "}}");
}

void TimelineWriter::process(int32_t pid, const std::string &name) { processNamed(pid, jsonString(name)); }

void TimelineWriter::processNamed(int32_t pid, const std::string &json) {
  if (!processes_.insert(pid).second)
    return;
  metadata("process_name", pid, 0, "\"name\":" + json);
  metadata("process_sort_index", pid, 0, "\"sort_index\":" + std::to_string(pid));
}

void TimelineWriter::row(int32_t pid, int32_t number, const std::string &label) {
  rows_.try_emplace({pid, jsonString(label)}, number);
  eventsOfRows_.try_emplace({pid, number}, 0);
  metadata("thread_name", pid, number, "\"name\":" + jsonString(label));
}

int32_t TimelineWriter::rowNamed(int32_t pid, const std::string &json) {
  const auto [row, isNew] = rows_.try_emplace({pid, json}, 0);
  if (!isNew)
    return row->second;
  // Behind all others of the task.
  const auto next = eventsOfRows_.lower_bound({pid + 1, INT32_MIN});
  row->second =
      next != eventsOfRows_.begin() && std::prev(next)->first.first == pid ? std::prev(next)->first.second + 1 : 0;
  eventsOfRows_.try_emplace({pid, row->second}, 0);
  metadata("thread_name", pid, row->second, "\"name\":" + json);
  return row->second;
}

int64_t TimelineWriter::eventsOf(int32_t pid, int32_t row) const {
  const auto found = eventsOfRows_.find({pid, row});
  return found == eventsOfRows_.end() ? 0 : found->second;
}

void TimelineWriter::event(int32_t pid, int32_t row, std::string_view name, std::string_view category, int64_t beginNs,
                           int64_t endNs, int64_t step) {
  const auto microseconds = [](int64_t from, int64_t to) { return static_cast<double>(to - from) * 1e-3; };
  char times[160];
  std::snprintf(times, sizeof times,
                ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%" PRId64 "}}", pid,
                row, microseconds(originNs_, beginNs), microseconds(beginNs, endNs), step);
  line(std::string("{\"name\":") + jsonString(name) + ",\"cat\":" + jsonString(category) + times);
  ++eventsOfRows_[{pid, row}];
}

void TimelineWriter::copyEvent(std::string_view text, int32_t pid, int32_t oldRow, int32_t row) {
  std::string moved(text);
  const std::string old = ",\"tid\":" + std::to_string(oldRow) + ",";
  if (const size_t at = moved.rfind(old); at != std::string::npos)
    moved.replace(at, old.size(), ",\"tid\":" + std::to_string(row) + ",");
  line(moved);
  ++eventsOfRows_[{pid, row}];
}

void TimelineWriter::publish(const std::string &otherData) {
  write("\n],\"otherData\":" + otherData + "}\n");
  file_.publish();
}

} // namespace drt

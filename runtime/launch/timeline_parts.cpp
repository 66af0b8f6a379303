//===- timeline_parts.cpp - A task's timeline on its way to task 0 --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/timeline_parts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace drt {
namespace {

constexpr size_t partBytes = 128 << 10;
constexpr uint32_t mostNames = 1 << 20;
/// No clock shows more, and differences of such times are no overflow.
constexpr int64_t latestNs = int64_t{1} << 60;

template <class T> void put(std::string &part, T value) {
  part.append(reinterpret_cast<const char *>(&value), sizeof value);
}
void putText(std::string &part, std::string_view text) {
  put(part, static_cast<uint32_t>(text.size()));
  part.append(text);
}

[[noreturn]] void refuse() { throw MalformedPart("what it has sent is no part of a timeline"); }

/// Reads from the front.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool atEnd() const { return bytes_.empty(); }
  template <class T> T take() {
    if (bytes_.size() < sizeof(T))
      refuse();
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = take<uint32_t>();
    if (bytes_.size() < size)
      refuse();
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }
  int64_t time() {
    const auto ns = take<int64_t>();
    if (ns < -latestNs || ns > latestNs)
      refuse();
    return ns;
  }

private:
  std::string_view bytes_;
};

} // namespace

TimelinePacker::TimelinePacker(std::vector<const TimelineRow *> rows, ClockAlignment clock, std::string machine)
    : rows_(std::move(rows)), clock_(std::move(clock)), machine_(std::move(machine)) {}

uint32_t TimelinePacker::numberOf(std::string &part, const TimelineRow::Event &event) {
  const auto [name, isNew] = names_.try_emplace({event.name, event.category}, static_cast<uint32_t>(names_.size()));
  if (isNew) {
    put(part, 'N');
    putText(part, event.name);
    putText(part, event.category);
  }
  return name->second;
}

std::string TimelinePacker::next() {
  std::string part;
  while (!ended_ && part.size() < partBytes) {
    if (nextEvent_ < events_.size()) {
      const TimelineRow::Event &event = events_[nextEvent_++];
      const uint32_t name = numberOf(part, event);
      put(part, 'E');
      put(part, rows_[nextRow_ - 1]->number());
      put(part, name);
      put(part, clock_.toReference(event.beginNs));
      put(part, clock_.toReference(event.endNs));
      put(part, event.step);
      firstNs_ = std::min(firstNs_, event.beginNs);
      lastNs_ = std::max(lastNs_, event.endNs);
    } else if (nextRow_ < rows_.size()) {
      const TimelineRow &row = *rows_[nextRow_++];
      events_ = row.events();
      nextEvent_ = 0;
      put(part, 'R');
      put(part, row.number());
      putText(part, row.label());
    } else {
      put(part, 'T');
      putText(part, machine_);
      put(part, clock_.kind());
      const bool isEmpty = firstNs_ > lastNs_;
      put(part, isEmpty ? int64_t{0} : clock_.aheadNs(lastNs_));
      put(part, isEmpty ? int64_t{0} : clock_.uncertaintyNs(firstNs_, lastNs_));
      ended_ = true;
    }
  }
  return part;
}

void TimelineUnpacker::take(std::string_view part) {
  for (Reader reader(part); !reader.atEnd();) {
    if (summary_)
      refuse();
    switch (reader.take<char>()) {
    case 'R': {
      const auto number = reader.take<int32_t>();
      writer_.row(pid_, number, std::string(reader.text()));
      break;
    }
    case 'N': {
      const std::string_view name = reader.text(), category = reader.text();
      if (names_.size() >= mostNames)
        refuse();
      names_.emplace_back(name, category);
      break;
    }
    case 'E': {
      const auto row = reader.take<int32_t>();
      const auto number = reader.take<uint32_t>();
      const int64_t begin = reader.time(), end = reader.time();
      const auto step = reader.take<int64_t>();
      if (number >= names_.size())
        refuse();
      writer_.event(pid_, row, names_[number].first, names_[number].second, begin, end, step);
      ++events_;
      break;
    }
    case 'T': {
      TimelineSummary summary;
      summary.machine = reader.text();
      const auto kind = reader.take<uint8_t>();
      if (kind > static_cast<uint8_t>(ClockAlignment::Kind::Measured))
        refuse();
      summary.clock = static_cast<ClockAlignment::Kind>(kind);
      summary.aheadNs = reader.time();
      summary.uncertaintyNs = reader.time();
      summary_ = std::move(summary);
      break;
    }
    default:
      refuse();
    }
  }
}

} // namespace drt

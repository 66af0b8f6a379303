//===- earlier_timeline.cpp - What earlier starts of a run have written ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/earlier_timeline.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

namespace drt {
namespace {

/// The number behind the last `key`: names are in front of what is asked for, and may hold anything.
std::optional<double> numberBehind(std::string_view line, std::string_view key) {
  const size_t at = line.rfind(key);
  if (at == std::string_view::npos)
    return std::nullopt;
  const std::string text(line.substr(at + key.size(), 40));
  char *end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? std::nullopt : std::optional(number);
}

std::string_view without(std::string_view line, std::string_view end) {
  return line.ends_with(end) ? line.substr(0, line.size() - end.size()) : line;
}

struct Event {
  int32_t pid, row;
  double at;
  int64_t step;
};

/// Of a line that TimelineWriter wrote for an event.
std::optional<Event> readEvent(std::string_view line) {
  const size_t numbers = line.rfind(",\"ph\":\"X\"");
  if (numbers == std::string_view::npos)
    return std::nullopt;
  line.remove_prefix(numbers);
  const auto pid = numberBehind(line, "\"pid\":"), row = numberBehind(line, "\"tid\":"),
             at = numberBehind(line, "\"ts\":"), step = numberBehind(line, "\"step\":");
  if (!pid || !row || !at || !step)
    return std::nullopt;
  return Event{static_cast<int32_t>(*pid), static_cast<int32_t>(*row), *at, static_cast<int64_t>(*step)};
}

constexpr std::string_view metadataBegin = "{\"ph\":\"M\",\"name\":\"", nameBegin = "\"args\":{\"name\":";

} // namespace

std::optional<EarlierTimeline> EarlierTimeline::find(const std::string &path, const std::string &run) {
  std::error_code error;
  if (run.empty() || !std::filesystem::is_regular_file(path, error))
    return std::nullopt;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  EarlierTimeline earlier;
  earlier.path_ = path;
  const std::optional<double> origin = numberBehind(line, TimelineWriter::originKey);
  if (!origin)
    return std::nullopt;
  earlier.originNs_ = std::strtoll(
      line.c_str() + line.rfind(TimelineWriter::originKey) + TimelineWriter::originKey.size(), nullptr, 10);
  return line == TimelineWriter::head(earlier.originNs_, run) ? std::optional(earlier) : std::nullopt;
}

std::string EarlierTimeline::copyTo(TimelineWriter &writer, int64_t end) const {
  // A row has another number in a group of another size: its label says which it is.
  std::map<std::pair<int32_t, int32_t>, int32_t> rows;
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> begins;
  std::string tasks, line;
  for (std::ifstream in(path_); std::getline(in, line);) {
    const std::string_view text = without(line, ",");
    if (const std::optional<Event> event = readEvent(text); event && event->step < end) {
      begins[{event->pid, event->row}].push_back(event->at);
    } else if (text.starts_with(metadataBegin) && text.find(nameBegin) != std::string_view::npos) {
      const std::string_view kind = text.substr(metadataBegin.size()), numbers = text.substr(0, text.find(nameBegin));
      const auto pid = numberBehind(numbers, "\"pid\":"), row = numberBehind(numbers, "\"tid\":");
      const std::string label(without(text.substr(text.find(nameBegin) + nameBegin.size()), "}}"));
      if (pid && row && kind.starts_with("thread_name"))
        rows[{*pid, *row}] = writer.rowNamed(static_cast<int32_t>(*pid), label);
      else if (pid && kind.starts_with("process_name"))
        writer.processNamed(static_cast<int32_t>(*pid), label);
    } else if (text.starts_with("{\"task\":")) {
      tasks.append(",\n").append(text);
    }
  }
  // Of each row from when on: the newest stay.
  std::map<std::pair<int32_t, int32_t>, double> from;
  for (auto &[row, at] : begins) {
    const int64_t room = TimelineRow::most - writer.eventsOf(row.first, rows.contains(row) ? rows[row] : row.second);
    if (static_cast<int64_t>(at.size()) <= room)
      continue;
    const auto first = at.end() - std::max<int64_t>(room, 0);
    if (first != at.end())
      std::nth_element(at.begin(), first, at.end());
    from[row] = first == at.end() ? std::numeric_limits<double>::infinity() : *first;
  }
  for (std::ifstream in(path_); std::getline(in, line);) {
    const std::string_view text = without(line, ",");
    const std::optional<Event> event = readEvent(text);
    if (!event || event->step >= end)
      continue;
    const std::pair<int32_t, int32_t> row = {event->pid, event->row};
    if (const auto begin = from.find(row); begin == from.end() || event->at >= begin->second)
      writer.copyEvent(text, row.first, row.second, rows.contains(row) ? rows[row] : row.second);
  }
  return tasks;
}

} // namespace drt

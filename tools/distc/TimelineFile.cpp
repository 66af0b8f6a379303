//===- TimelineFile.cpp - What an executable's --timeline wrote ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/TimelineFile.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanReport.h"
#include "passes/lower/program/ScopeNames.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir;

namespace distc {

/// A page with more events than this is slow to open.
static constexpr size_t kMostEvents = 200000;

llvm::Expected<TimelineFile> TimelineFile::read(const std::string &path) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("the timeline '" + path + "' " + what +
                                   "; give a file that an executable's --timeline wrote");
  };
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read the timeline '" + path + "': " + file.getError().message());
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed)
    return fail("is no JSON: " + llvm::toString(parsed.takeError()));
  const llvm::json::Object *root = parsed->getAsObject();
  const llvm::json::Array *trace = root ? root->getArray("traceEvents") : nullptr;
  if (!trace)
    return fail("has no 'traceEvents'");
  TimelineFile timeline;
  timeline.path = path;
  llvm::StringMap<int64_t> numbers; // of names
  for (const llvm::json::Value &value : *trace) {
    const llvm::json::Object *event = value.getAsObject();
    auto text = [&](llvm::StringRef key) { return event->getString(key).value_or("").str(); };
    auto process = event ? event->getInteger("pid") : std::nullopt,
         thread = event ? event->getInteger("tid") : std::nullopt;
    if (!process || !thread)
      return fail("has an event without 'pid' and 'tid'");
    const llvm::json::Object *arguments = event->getObject("args");
    if (text("ph") == "M") {
      std::string name = arguments ? arguments->getString("name").value_or("").str() : "";
      if (text("name") == "process_name")
        timeline.processes[*process] = name;
      else
        timeline.rows[{*process, *thread}] = name;
      continue;
    }
    auto begin = event->getNumber("ts"), duration = event->getNumber("dur");
    auto step = arguments ? arguments->getInteger("step") : std::nullopt;
    if (text("ph") != "X" || !begin || !duration || !step)
      return fail("has an event that is not one of a step, with 'ts' and 'dur'");
    auto row = timeline.rows.insert({{*process, *thread}, "thread " + std::to_string(*thread)}).first;
    std::pair<std::string, std::string> name(text("cat"), text("name"));
    auto [number, isNew] = numbers.try_emplace(name.first + "\n" + name.second, timeline.names.size());
    if (isNew)
      timeline.names.push_back(std::move(name));
    timeline.events.push_back({row - timeline.rows.begin(), number->second, *step, *begin, *duration});
  }
  if (timeline.events.empty())
    return fail("has no events: no step was run");
  return timeline;
}

/// Whether what a row shows are operations of the plan: a replica's own thread, or its compute stream on a device. In
/// others the runtime communicates, and copies feeds.
static bool isOfReplica(llvm::StringRef label) {
  return label.starts_with("replica") && (!label.contains(':') || label.ends_with(": compute"));
}

llvm::Error TimelineFile::check(ModuleOp plan) const {
  llvm::StringSet<> scopes, categories;
  for (func::FuncOp entry : getEntries(plan))
    for (Operation &op : entry.getBody().front())
      if (llvm::StringRef category = getScopeCategory(&op); !category.empty()) {
        scopes.insert((category + "\n" + getScopeName(&op)).str());
        categories.insert(category);
      }
  llvm::SmallVector<bool> ofReplica;
  for (auto &[key, label] : rows)
    ofReplica.push_back(isOfReplica(label));
  std::vector<llvm::StringRef> unknown(names.size());
  for (auto [i, name] : llvm::enumerate(names))
    if (categories.contains(name.first) && !scopes.contains(name.first + "\n" + name.second))
      unknown[i] = name.second;
  for (const Event &event : events)
    if (ofReplica[event.row] && !unknown[event.name].empty())
      return llvm::createStringError(
          "the timeline '" + path + "' is of another program: it has '" + unknown[event.name] +
          "', which the plan does not; compile with the flags of the executable that wrote it");
  return llvm::Error::success();
}

void TimelineFile::write(llvm::json::OStream &json) const {
  // Whole steps, from the last one back, as many as fit.
  llvm::DenseMap<int64_t, size_t> ofStep;
  int64_t last = events.front().step, first = last;
  for (const Event &event : events) {
    ++ofStep[event.step];
    last = std::max(last, event.step);
    first = std::min(first, event.step);
  }
  int64_t from = last;
  for (size_t count = ofStep[last]; from > first && (count += ofStep.lookup(from - 1)) <= kMostEvents;)
    --from;
  json.attribute("file", toJsonText(path));
  json.attribute("first_step", from);
  json.attribute("last_step", last);
  json.attribute("steps_left_out", from - first);
  json.attributeArray("rows", [&] {
    for (auto &[key, label] : rows)
      writeRow(json, [&, &key = key, &label = label](llvm::json::OStream &row) {
        row.array([&] {
          row.value(toJsonText(processes.lookup(key.first)));
          row.value(toJsonText(label));
        });
      });
  });
  json.attributeArray("names", [&] {
    for (const auto &name : names)
      writeRow(json, [&](llvm::json::OStream &row) {
        row.array([&] {
          row.value(toJsonText(name.first));
          row.value(toJsonText(name.second));
        });
      });
  });
  auto nanoseconds = [](double us) { return static_cast<int64_t>(std::llround(us * 1e3)); };
  json.attributeArray("events", [&] {
    for (const Event &event : events)
      if (event.step >= from)
        writeRow(json, [&](llvm::json::OStream &row) {
          row.array([&] {
            for (int64_t number :
                 {event.row, event.name, event.step, nanoseconds(event.begin), nanoseconds(event.duration)})
              row.value(number);
          });
        });
  });
}

} // namespace distc

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
#include <set>

using namespace mlir;

namespace distc {

/// A page with more events than this is slow to open.
static constexpr size_t kMostEvents = 200000;
/// In microseconds: a year.
static constexpr double kLongest = 365.0 * 24 * 3600 * 1e6;

/// Whether lists are in each other so many times that who reads them, call by call, may run out of stack.
static bool isTooDeep(llvm::StringRef json) {
  constexpr int kMostLevels = 64;
  int level = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (inString && json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      inString = !inString;
    else if (!inString && (json[i] == '[' || json[i] == '{') && ++level > kMostLevels)
      return true;
    else if (!inString && (json[i] == ']' || json[i] == '}'))
      --level;
  }
  return false;
}

llvm::Expected<TimelineFile> TimelineFile::read(const std::string &path) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("the timeline '" + path + "' " + what +
                                   "; give a file that an executable's --timeline wrote");
  };
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read the timeline '" + path + "': " + file.getError().message());
  if (isTooDeep((*file)->getBuffer()))
    return fail("has lists in lists in lists");
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed)
    return fail("is no JSON: " + llvm::toString(parsed.takeError()));
  const llvm::json::Object *root = parsed->getAsObject();
  const llvm::json::Array *trace = root ? root->getArray("traceEvents") : nullptr;
  if (!trace)
    return fail("has no 'traceEvents'");
  TimelineFile timeline;
  timeline.path = path;
  llvm::StringMap<int64_t> numbers;                      // of names
  std::map<std::pair<int64_t, int64_t>, int64_t> places; // in rows, by process and thread
  auto rowOf = [&](int64_t process, int64_t thread) {
    auto [place, isNew] = places.try_emplace({process, thread}, timeline.rows.size());
    if (isNew)
      timeline.rows.push_back({process, "thread " + std::to_string(thread)});
    return place->second;
  };
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
        timeline.tasks[*process].name = name;
      else if (text("name") == "thread_name")
        timeline.rows[rowOf(*process, *thread)].label = name;
      continue;
    }
    auto begin = event->getNumber("ts"), duration = event->getNumber("dur");
    auto step = arguments ? arguments->getInteger("step") : std::nullopt;
    auto isTime = [](std::optional<double> us) { return us && std::abs(*us) <= kLongest; };
    if (text("ph") != "X" || !isTime(begin) || !isTime(duration) || !step || *step < 0)
      return fail("has an event that is not one of a step, with 'ts' and 'dur'");
    std::pair<std::string, std::string> name(text("cat"), text("name"));
    auto [number, isNew] = numbers.try_emplace(name.first + "\n" + name.second, timeline.names.size());
    if (isNew)
      timeline.names.push_back(std::move(name));
    timeline.events.push_back({rowOf(*process, *thread), number->second, *step, *begin, *duration});
  }
  if (timeline.events.empty())
    return fail("has no events: no step was run");
  timeline.readTasks(*root);
  return timeline;
}

/// What the file says of clocks. One that says nothing, and has one task, has one clock.
void TimelineFile::readTasks(const llvm::json::Object &root) {
  for (const Row &row : rows)
    tasks.try_emplace(row.process);
  const llvm::json::Object *other = root.getObject("otherData");
  const llvm::json::Array *described = other ? other->getArray("tasks") : nullptr;
  if (!described) {
    if (tasks.size() == 1)
      tasks.begin()->second.uncertainty = 0;
    return;
  }
  // A task that was started again is there once for each start.
  std::map<int64_t, double> uncertainties;
  std::set<int64_t> unknown;
  const llvm::json::Array *earlier = other->getArray("earlier");
  for (const llvm::json::Array *list : {described, earlier})
    for (size_t i = 0; list && i < list->size(); ++i) {
      const llvm::json::Object *task = (*list)[i].getAsObject();
      auto process = task ? task->getInteger("pid") : std::nullopt;
      auto found = process ? tasks.find(*process) : tasks.end();
      if (found == tasks.end())
        continue;
      if (auto name = task->getString("task"))
        found->second.name = name->str();
      auto uncertainty = task->getNumber("uncertainty_us");
      if (!uncertainty || task->getString("clock").value_or("unknown") == "unknown")
        unknown.insert(*process);
      else
        uncertainties[*process] = std::max(uncertainties[*process], *uncertainty);
    }
  for (auto [process, uncertainty] : uncertainties)
    if (!unknown.count(process))
      tasks[process].uncertainty = uncertainty;
}

/// Whether what a row shows are operations of the plan: a replica's own thread, or its compute stream on a device. In
/// others the runtime communicates, and copies feeds.
static bool isOfReplica(llvm::StringRef label) {
  return label.starts_with("replica") && (!label.contains(':') || label.ends_with(": compute"));
}

llvm::Error TimelineFile::check(ModuleOp plan) const {
  llvm::StringSet<> scopes, categories;
  for (drt::EntryOp entry : getEntries(plan))
    for (Operation &op : entry.getBody().front())
      if (llvm::StringRef category = getScopeCategory(&op); !category.empty()) {
        scopes.insert((category + "\n" + getScopeName(&op)).str());
        categories.insert(category);
      }
  llvm::SmallVector<bool> ofReplica;
  for (const Row &row : rows)
    ofReplica.push_back(isOfReplica(row.label));
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
  std::map<int64_t, size_t> ofStep;
  for (const Event &event : events)
    ++ofStep[event.step];
  int64_t from = ofStep.rbegin()->first, leftOut = ofStep.size();
  size_t count = 0;
  for (auto step = ofStep.rbegin();
       step != ofStep.rend() && (leftOut == static_cast<int64_t>(ofStep.size()) || count + step->second <= kMostEvents);
       ++step) {
    from = step->first;
    count += step->second;
    --leftOut;
  }
  json.attribute("file", toJsonText(path));
  json.attribute("first_step", from);
  json.attribute("last_step", ofStep.rbegin()->first);
  json.attribute("steps_left_out", leftOut);
  json.attributeArray("tasks", [&] {
    for (const auto &[process, task] : tasks)
      writeRow(json, [&, &task = task](llvm::json::OStream &row) {
        row.object([&] {
          row.attribute("name", toJsonText(task.name));
          if (task.uncertainty)
            row.attribute("uncertainty_us", *task.uncertainty);
        });
      });
  });
  json.attributeArray("rows", [&] {
    for (const Row &one : rows)
      writeRow(json, [&](llvm::json::OStream &row) {
        row.array([&] {
          row.value(toJsonText(tasks.at(one.process).name));
          row.value(toJsonText(one.label));
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

//===- TimelineFile.h - What an executable's --timeline wrote --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_TIMELINEFILE_H
#define DISTC_TOOLS_DISTC_TIMELINEFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <optional>

namespace distc {

/// A file in Chrome's trace format, of a run's tasks, as the runtime writes it.
class TimelineFile {
public:
  /// Fails where the file is no such trace.
  static llvm::Expected<TimelineFile> read(const std::string &path);

  /// Fails where it is of another program: a replica ran what no entry of the plan has.
  llvm::Error check(mlir::ModuleOp plan) const;

  /// Writes it as attributes of the object that is open: rows, names and events (docs/plan-page.md). Of a long run the
  /// last steps.
  void write(llvm::json::OStream &json) const;

private:
  void readTasks(const llvm::json::Object &root);

  struct Row {
    int64_t process;
    std::string label;
  };
  struct Task {
    std::string name;
    std::optional<double> uncertainty; // of its times on the file's clock, in microseconds; none: it has its own clock
  };
  struct Event {
    int64_t row, name, step;
    double begin, duration; // microseconds
  };

  std::string path;
  std::vector<Row> rows;
  std::map<int64_t, Task> tasks;                          // by process
  std::vector<std::pair<std::string, std::string>> names; // category and name
  std::vector<Event> events;
};

} // namespace distc

#endif // DISTC_TOOLS_DISTC_TIMELINEFILE_H

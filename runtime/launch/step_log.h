//===- step_log.h - What a run says of its steps --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_STEP_LOG_H
#define DRT_LAUNCH_STEP_LOG_H

#include "core/growing_file.h"
#include "drt/drt.h"
#include "servers/parameter_server.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// Examples whose gradients a step is made of; 0 where the graph reads none.
int64_t examplesOfStep(const drt_program &program);

/// A value that is logged under a name.
struct NamedValue {
  std::string_view name;
  double value = 0;
};

/// One step, done.
struct StepRecord {
  int64_t step = 0; // steps before it
  bool hasLoss = false;
  double loss = 0; // mean over all replicas of all tasks
  int64_t nanoseconds = 0;
  int64_t endNs = 0;               // on the monotonic clock
  std::vector<NamedValue> fetches; // those that are logged with this step
};

/// --log-json: the plan, a line a step, how it ended. Handed to the system a second
/// later at the latest; on the disk when sync() returns. Throws drt::Error.
class StepLog {
public:
  /// restartedAt: a restart continues the file. It is cut where that step begins, which
  /// will be done again, and so will those behind it; lines before it are never rewritten.
  StepLog(const std::string &path, const drt_program &program, std::optional<int64_t> restartedAt);

  void write(const StepRecord &record);
  /// What an evaluation gave behind step `step`.
  void evaluated(int64_t step, const std::vector<NamedValue> &values);
  /// signal: what ended the run early, 0 for none; stopped: the condition that did, "" for none; gradients: where
  /// servers count them.
  void done(int64_t steps, double seconds, const std::string &checkpoint, int signal, const std::string &stopped,
            std::optional<GradientCounts> gradients);
  void sync() { file_.sync(); }

private:
  GrowingFile file_;
  double examples_; // of a step
  int64_t flushNs_ = 0;
};

} // namespace drt

#endif // DRT_LAUNCH_STEP_LOG_H

//===- variables.h - A task's variables, in files -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_VARIABLES_H
#define DRT_LAUNCH_VARIABLES_H

#include "core/task.h"

#include <string>
#include <vector>

namespace drt {

class CheckpointWriter;

/// Fills every saved variable, or its slice, or its shares, from a checkpoint. Throws drt::Error
/// that names the first one that is missing or does not fit. Where variables are not in every task
/// every task calls it, and task 0 alone reads.
void restoreVariables(TaskRuntime &task, const std::string &prefix);

/// Variables that the tasks hold in shares, or one of them alone, put together in task 0. Every task makes one at the
/// same time.
class WholeVariables {
public:
  explicit WholeVariables(TaskRuntime &task);

  /// A variable's elements: the task's own memory where every task has it.
  const void *data(int32_t variable) const;

  const TaskRuntime &task() const { return task_; }

private:
  const TaskRuntime &task_;
  std::vector<std::vector<char>> wholes_; // by variable; empty where every task has it
};

/// Whether some variable is held in shares, or by one task alone.
bool hasSpread(const drt_program &program);

/// Adds every saved variable under its name in the original graph.
void saveVariables(const WholeVariables &variables, CheckpointWriter &writer);

/// Writes all variables, whole, as an .npz.
void exportVariables(const WholeVariables &variables, const std::string &path);

} // namespace drt

#endif // DRT_LAUNCH_VARIABLES_H

//===- variables.h - A task's variables, in files -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_VARIABLES_H
#define DRT_LAUNCH_VARIABLES_H

#include "core/task.h"

#include <string>

namespace drt {

class CheckpointWriter;

/// Fills every saved variable, or its slice, from a checkpoint. Throws drt::Error
/// that names the first one that is missing or does not fit.
void restoreVariables(TaskRuntime &task, const std::string &prefix);

/// Adds every saved variable under its name in the original graph.
void saveVariables(const TaskRuntime &task, CheckpointWriter &writer);

/// Writes all variables, whole, as an .npz.
void exportVariables(const TaskRuntime &task, const std::string &path);

} // namespace drt

#endif // DRT_LAUNCH_VARIABLES_H

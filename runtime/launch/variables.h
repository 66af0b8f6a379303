//===- variables.h - A task's variables, in files -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_VARIABLES_H
#define DRT_LAUNCH_VARIABLES_H

#include "core/memory.h"
#include "core/task.h"

#include <cstdint>
#include <string>
#include <vector>

namespace drt {

class CheckpointWriter;

/// What a checkpoint has of a variable that is the program's objects' but not its step's: a SavedModel's objects own
/// variables that no training step captured.
struct CarriedVariable {
  std::string key; // in the program's checkpoints
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

/// Fills every saved variable, or its slice, or its shares, from a checkpoint. Throws drt::Error
/// that names the first one that is missing or does not fit. Where variables are not in every task
/// every task calls it, and task 0 alone reads. `carried`, where it is not null, gets in task 0 what the checkpoint
/// has of the objects' other variables; none of them need be there.
void restoreVariables(TaskRuntime &task, const std::string &prefix, std::vector<CarriedVariable> *carried = nullptr);

/// Whether some variable is held in shares, or by one task alone.
bool hasSpread(const drt_program &program);

/// Adds every saved variable under its name in the original graph, and those that are carried along. Where variables
/// are not in every task every task calls it, and task 0 alone has a `writer`; what others hold goes by it part after
/// part.
void saveVariables(TaskRuntime &task, const std::vector<CarriedVariable> &carried, CheckpointWriter *writer);

/// The saved variables of a task that has all of them (see hasSpread), as they were when it was made: what a checkpoint
/// is written of while the training goes on.
class VariablesCopy {
public:
  /// What a copy takes.
  static int64_t bytesOf(const drt_program &program);
  /// Throws drt::Error where there is no memory for it.
  explicit VariablesCopy(TaskRuntime &task);
  /// As saveVariables does; in any thread.
  void save(const std::vector<CarriedVariable> &carried, CheckpointWriter &writer) const;

private:
  const drt_program &program_;
  std::vector<int64_t> offsets_; // of each saved variable in the memory
  Memory memory_;
};

/// Writes all variables, whole, as an .npz, in task 0; called as saveVariables. What is in shards is put together
/// there.
void exportVariables(TaskRuntime &task, const std::string &path);

} // namespace drt

#endif // DRT_LAUNCH_VARIABLES_H

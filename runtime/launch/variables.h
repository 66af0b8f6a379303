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
#include <optional>
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

/// Whether task 0 has not all of some variable: the tasks hold shares of it, or another one has it alone.
bool hasSpread(const drt_program &program);

/// Adds every saved variable under its name in the original graph, and those that are carried along. Where variables
/// are not in every task every task calls it, and task 0 alone has a `writer`; what others hold goes by it part after
/// part.
void saveVariables(TaskRuntime &task, const std::vector<CarriedVariable> &carried, CheckpointWriter *writer);

/// How tasks write a checkpoint together: each what it alone has, and task 0 the rest.
class SavedParts {
public:
  /// None where one task must write all: nothing is one task's alone, or some variable lies in shares of all of them,
  /// or is a slice that is stored whole.
  static std::optional<SavedParts> of(const drt_program &program);

  int parts() const { return static_cast<int>(writers_.size()); }
  /// Of a task; -1: it writes nothing. Task 0 has part 0.
  int partOf(int task) const;
  int partOf(const drt_variable &variable) const;

private:
  std::vector<int> writers_; // tasks, ascending; the first is 0
};

/// Adds what is of this part, as saveVariables does; no other task is asked for anything. Part 0 has what is carried
/// along.
void savePart(TaskRuntime &task, const SavedParts &parts, int part, const std::vector<CarriedVariable> &carried,
              CheckpointWriter &writer);

/// The saved variables of a task that has all of them (see hasSpread), or those of its part, as they were when it was
/// made: what a checkpoint is written of while the training goes on.
class VariablesCopy {
public:
  /// What a copy takes.
  static int64_t bytesOf(const drt_program &program, const SavedParts *parts = nullptr, int part = 0);
  /// Throws drt::Error where there is no memory for it. `parts`, where they are not null, outlive the copy.
  explicit VariablesCopy(TaskRuntime &task, const SavedParts *parts = nullptr, int part = 0);
  /// As saveVariables does, or savePart; in any thread.
  void save(const std::vector<CarriedVariable> &carried, CheckpointWriter &writer) const;

private:
  const drt_program &program_;
  const SavedParts *const parts_;
  const int part_;
  std::vector<int64_t> offsets_; // of each saved variable in the memory
  Memory memory_;
};

/// Writes all variables, whole, as an .npz, in task 0; called as saveVariables. What is in shards is put together
/// there.
void exportVariables(TaskRuntime &task, const std::string &path);

} // namespace drt

#endif // DRT_LAUNCH_VARIABLES_H

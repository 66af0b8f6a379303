//===- launchers.h - What torchrun, Slurm, Open MPI and TF_CONFIG say -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_LAUNCHERS_H
#define DRT_LAUNCH_LAUNCHERS_H

#include "launch/tasks.h"

#include <optional>
#include <string>

namespace drt {

struct LauncherInfo {
  std::string launcher;    // "torchrun"
  std::string size_source; // "WORLD_SIZE=4"
  int size = 0;
  int rank = 0;           // where `task` is empty
  std::string task;       // "worker:1", where the launcher names tasks
  std::string rendezvous; // host:port, "" where it does not say
};

/// Reads the first of TF_CONFIG, torchrun, Open MPI and Slurm that the environment
/// holds. Throws Error for one that is incomplete or malformed.
std::optional<LauncherInfo> find_launcher(const Environment &environment, const std::vector<Task> &tasks);

/// The first host of Slurm's compressed list: "gpu[007-012,020],login" -> "gpu007".
std::string first_slurm_host(const std::string &node_list);

} // namespace drt

#endif // DRT_LAUNCH_LAUNCHERS_H

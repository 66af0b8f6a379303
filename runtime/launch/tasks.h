//===- tasks.h - Which task of the plan this process is -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Launching is left to what exists: a process takes its place in the plan from
// --task, or from the environment that torchrun, Slurm, Open MPI or TF_CONFIG
// give. Without any of these it is a plain start, which is enough where all tasks
// lie on this machine.
//
// Everything here is plain data and functions of their arguments; errors are
// drt::Error whose message names both sides and the way out.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_TASKS_H
#define DRT_LAUNCH_TASKS_H

#include "drt/drt.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace drt {

/// One process of the plan. Its rank is its position in the plan's list.
struct Task {
  std::string job;
  int32_t index = 0;
  std::string host;
  int32_t first_replica = 0;
  int32_t num_replicas = 1;

  std::string name() const { return job + ":" + std::to_string(index); }
};

/// The tasks to start: the program's, or one for each replica of them
/// (--one-process-per-replica), numbered anew within the job.
std::vector<Task> plan_tasks(const drt_program &program, bool one_process_per_replica);

/// Looks a variable of the environment up; null where it is not set.
using Environment = std::function<const char *(const char *name)>;
Environment process_environment();

enum class PlaceKind {
  Sole,     // the plan has one task, and this process is it
  Member,   // this process is task `rank`, to meet the others at `rendezvous`
  StartAll, // plain start, every task lies on this machine: start them all
};

struct Place {
  PlaceKind kind = PlaceKind::Sole;
  int rank = 0;
  std::string rendezvous; // host:port of task 0's server; set for Member
  std::string source;     // what said so: "--task", "TF_CONFIG", "torchrun", "Slurm", "Open MPI", ""
};

/// Port of the rendezvous where nothing names one.
inline constexpr int default_rendezvous_port = 29500;

/// Finds this process's place. `task_flag` and `rendezvous_flag` are --task and
/// --rendezvous, empty where not given; the flags win over the environment, and
/// the environment is read in the order TF_CONFIG, torchrun, Open MPI, Slurm.
/// Throws where the launcher's number of tasks differs from the plan's, where the
/// task is unknown, where --task comes without --rendezvous, and where a plain start cannot reach all tasks (the
/// message then holds the command for each; `command` is how this program was called).
Place find_place(const std::vector<Task> &tasks, const std::string &task_flag, const std::string &rendezvous_flag,
                 const Environment &environment, const std::vector<std::string> &command);

/// Whether a host of the plan is this machine: localhost, a loopback address, an
/// address of one of its interfaces, its host name, or a name that resolves to one.
bool is_this_machine(const std::string &host);

} // namespace drt

#endif // DRT_LAUNCH_TASKS_H

//===- run_report.h - What the time of a run went to ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// --report F: each task's share of computing, waiting and transfer, the bandwidth that collectives reach beside the one
// that was measured before the first step, who is late and how often, percentiles of the steps' times.
//
// All tasks take the same collectives in the same order. When each came to one and went, on its own clock, travels with
// the sum of the loss, and how clocks differ follows from them (task_clocks.h). The last one to come is the one that
// the others have waited for; what is left is what the collective itself takes. What each task has added up travels in
// the same way, so that task 0 can write the file at any time.
//
// In a task the replica that has waited least in a step was the last one, in the same way. Where servers serve on their
// own, they see in which order gradients come.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_RUN_REPORT_H
#define DRT_LAUNCH_RUN_REPORT_H

#include "collectives/metered_communicator.h"
#include "core/task.h"
#include "launch/step_times.h"
#include "launch/task_clocks.h"
#include "launch/tasks.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drt {

class RunReport {
public:
  /// `path`: task 0's file. `communicator`: null where there is one task; measures its bandwidth, which every task does
  /// at the same time.
  RunReport(std::string path, const drt_program &program, std::vector<Task> tasks, int rank,
            Communicator *communicator);

  /// What the task shall be given; null where there is one.
  Communicator *communicator() { return metered_ ? &*metered_ : nullptr; }

  // ---- Of a step, in this order ------------------------------------------------

  /// What has been done until now belongs to no step.
  void discard();
  /// The trainer has made the input, from `beginNs` on.
  void fed(int64_t beginNs);
  /// The trainer has waited for other tasks, from `beginNs` on.
  void waited(int64_t beginNs);
  /// A run of an entry has ended, which began at `beginNs`.
  void ran(int64_t beginNs, const TaskRuntime &task);
  /// A step has ended. Every task calls it between the same collectives.
  void stepDone(int64_t nanoseconds, const TaskRuntime &task);

  /// Numbers that are to be summed over all tasks before the next step ends: as many in every task.
  int64_t numbers() const;
  void put(double *numbers) const;
  void take(const double *sums);

  // ---- The file, which task 0 writes -----------------------------------------------

  /// Throws where it cannot be written.
  void open() { write(false); }
  /// Every few seconds, while steps are taken: what is there when a run is lost.
  void writeIfDue();
  /// Every task calls it, when all sums have been taken.
  void finish();
  /// A table for who watches.
  void print() const;

private:
  // Of a replica, in nanoseconds; added up over all steps. What is left of Wall is what it computed.
  enum Account { Wall, Waiting, Transfer, Input, Between, LateNs, LateSteps, Dropped, Steps, Accounts };
  struct Replica {
    double of[Accounts] = {};
  };
  // Of a task, in bytes and nanoseconds, over all collectives.
  enum { Bytes, TransferNs, Bandwidth, TaskNumbers };
  struct TaskTotals {
    double of[TaskNumbers] = {};
  };
  struct Step {
    TimeSpan run;
    int64_t wallNs = 0, inputNs = 0;
    std::vector<ReplicaUse> uses; // of the local replicas
    std::vector<TimeSpan> waits;  // of the trainer, outside the run
    std::vector<MeteredCollective> collectives;
  };
  struct OfName {
    int64_t count = 0, bytes = 0;
    double transferNs = 0, waitingNs = 0; // the latter is the mean over tasks
  };
  struct Late {
    std::string who;
    double steps, seconds, dropped;
  };

  void compareClocks();
  void account(const Step &step, const std::vector<TimeSpan> &transfers);
  void accountServed(const TaskRuntime &task);
  std::vector<double> sharesOf(size_t firstReplica, size_t count) const;
  double steps() const;
  std::vector<Late> stragglers() const;
  Late lateTask(size_t task) const;
  Late lateReplica(size_t replica) const;
  void write(bool done);
  std::string lateText(const Late &late) const;
  std::string sharesText(size_t firstReplica, size_t count) const;
  std::string transferText(const TaskTotals &total) const;
  size_t localReplicas() const { return static_cast<size_t>(tasks_[static_cast<size_t>(rank_)].num_replicas); }
  size_t firstReplica() const { return static_cast<size_t>(tasks_[static_cast<size_t>(rank_)].first_replica); }

  const std::string path_;
  const drt_program &program_;
  const std::vector<Task> tasks_;
  const int rank_;
  std::optional<MeteredCommunicator> metered_;
  TaskClocks clocks_;
  const int64_t beginNs_;
  int64_t writtenNs_;

  StepTimes times_;
  Step now_;
  std::optional<Step> summed_; // its durations are on their way
  std::vector<Replica> own_;   // of the local replicas; what the server knows of any
  TaskTotals ownTotals_;
  // Of all, as far as they are known.
  std::vector<Replica> replicas_;
  std::vector<TaskTotals> totals_;
  // Of task 0.
  struct LateTask {
    int64_t steps = 0;
    double ns = 0;
  };
  std::vector<LateTask> late_;
  std::map<std::string, OfName> names_;
};

} // namespace drt

#endif // DRT_LAUNCH_RUN_REPORT_H

//===- task.h - One task of a plan at work --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The interface between the launcher, which feeds, trains, saves and evaluates, and the device that a task computes on.
// runtime/cpu and runtime/cuda each derive a class; an executable is linked with one of them, which defines makeTask.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_TASK_H
#define DRT_CORE_TASK_H

#include "collectives/communicator.h"
#include "core/error.h"
#include "core/ranges.h"
#include "core/replica_use.h"
#include "core/timeline.h"
#include "drt/drt.h"
#include "random/state.h"
#include "servers/parameter_server.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

struct TaskConfig {
  int32_t firstReplica = 0;
  int32_t localReplicas = 1;
  int32_t numReplicas = 1; // over all tasks
  /// Replicas of the tasks on this host that come before this task, and of all
  /// tasks on this host: which cores or devices this task takes, and whether there are enough.
  int32_t hostOffset = 0;
  int32_t hostReplicas = 1;
  bool joint = false; // the program is joint: replicas of the other tasks run its entries together with this one's
  bool pin = true;
  bool shareDevices = false; // a device may have several replicas; for tests
  uint64_t entropy = 0;      // keys random operations without a seed
  bool timeline = false;
  std::string tuning;         // file of a device's algorithms that are timed and kept (--tune); empty: none is
  bool metered = false;       // what replicas' time goes to is recorded
  double stallWarning = 60;   // seconds; 0: never
  double failureTimeout = 10; // seconds, after which other devices are given up
  std::function<void(const std::string &)> warn; // null: stderr
  // Told why the task fails before it gives up what others wait for, who would say that they have lost it. Returns what
  // is to be said: another task's failure is the cause where that came first. May be null.
  std::function<std::string(const std::string &why)> failing;
};

/// Null where the program has no entry of that name.
const drt_entry *findEntry(const drt_program &program, std::string_view name);

/// The memory and the threads of one task. All members belong to the thread that constructs it, but for fail.
/// Everything throws drt::Error.
class TaskRuntime {
public:
  /// `communicator`: null where the plan has one task; not owned.
  TaskRuntime(const drt_program &program, Communicator *communicator, TaskConfig config)
      : program_(program), communicator_(communicator), config_(std::move(config)) {}
  virtual ~TaskRuntime();
  TaskRuntime(const TaskRuntime &) = delete;
  TaskRuntime &operator=(const TaskRuntime &) = delete;

  const drt_program &program() const { return program_; }
  const TaskConfig &config() const { return config_; }
  Communicator *communicator() { return communicator_; }
  int32_t localReplicas() const { return config_.localReplicas; }

  const drt_entry *findEntry(std::string_view name) const { return drt::findEntry(program_, name); }

  // ---- Entries -----------------------------------------------------------------

  /// Feed `feed` of the runs enqueued from now on: replica i is given share0 + i * shareBytes
  /// (shareBytes 0: all are given the same). What is given for one run must stay readable until enqueue returns;
  /// what no later call replaces, for as long as there are runs.
  virtual void setFeed(int32_t feed, const void *share0, int64_t shareBytes) = 0;

  /// Runs an entry in every replica, or begins to. Throws what drt_fail or a lost task said; after that the task
  /// cannot run anything more.
  virtual void enqueue(const drt_entry &entry, int64_t step) = 0;

  /// Joins the replicas at the end of the oldest run that has not been waited for. Throws as enqueue does.
  virtual void wait() = 0;

  /// Runs an entry in this task's replicas alone, whatever the others do, and waits for it.
  virtual void run(const drt_entry &entry, int64_t step) {
    enqueue(entry, step);
    wait();
  }

  /// Where such an entry reads rows that other tasks hold (DRT_BUCKET_PULL_ROWS), those call `answer` meanwhile, which
  /// returns when task 0 has called `endAlone` behind its last run.
  virtual void answer(const drt_entry &) {}
  virtual void endAlone(const drt_entry &) {}

  /// Where servers serve on their own (drt_program.servers): begins the replicas' steps, each at its own pace. From
  /// then on enqueueing the entry "step" lets one more update happen, and wait waits for it. `feed` gives local replica
  /// r the feeds of its own step k, counted from 0 here, or where r is the number of local replicas, the server those
  /// of update k; each is asked for by one thread at a time. `firstStep` numbers the first step and update.
  using FeedReplica = std::function<void(int32_t localReplica, int64_t step,
                                         const std::function<void(int32_t feed, const void *share)> &set)>;
  virtual void serve(FeedReplica feed, int64_t firstStep);
  /// Ends their steps; no update happens from here on.
  virtual void stopServing() {}
  virtual GradientCounts gradientCounts() const { return {}; }

  /// Of the run that was waited for last; null unless config.metered.
  virtual const ReplicaUse *replicaUse(int32_t localReplica) const { return nullptr; }
  /// Where servers serve on their own, of all steps so far; null unless config.metered.
  virtual const ServedUse *servedUse(int32_t localReplica) const { return nullptr; }
  /// What the server knows of each replica of all tasks; empty in tasks that have none.
  virtual std::vector<Lateness> lateness() const { return {}; }

  /// How many more runs are worth enqueueing before the first of them is waited for: where enqueue returns before the
  /// entry has run. More are never under way.
  virtual int32_t stepsAhead() const { return 0; }

  /// A replica's value of a fetch of the run that was waited for last; readable until the next enqueue.
  virtual const void *fetched(int32_t localReplica, const drt_fetch &fetch) const = 0;

  // ---- Variables ---------------------------------------------------------------

  /// The task's variable, in the host's memory; of one that is held in shares those of the task's replicas, side by
  /// side. Where a device has memory of its own it is a copy, read after fetchVariables and written before
  /// sendVariables.
  virtual void *variable(int32_t index) const = 0;
  virtual void fetchVariables() {}
  virtual void sendVariables() {}

  /// Copies task 0's variables to every task, those held in shares excepted, and replica 0's to the task's others
  /// where each has its own.
  virtual void broadcastVariables() = 0;

  /// Of a variable that the tasks hold in shares, or one of them alone, bytes of the whole: from those who have them to
  /// task 0's `part`, which others may leave null. Every task calls it.
  virtual void gatherPart(int32_t variable, Range bytes, void *part);
  /// The other way round, from task 0's `part`.
  virtual void scatterPart(int32_t variable, Range bytes, const void *part);
  /// The same of all bytes, in parts of this many, so that no task needs room for more of another's.
  static constexpr int64_t partBytes = int64_t(4) << 20;
  void gatherShares(int32_t variable, void *whole);
  void scatterShares(int32_t variable, const void *whole);

  // ---- Random numbers ----------------------------------------------------------

  /// Where the random operations that have run stand, and others are to begin, in replica 0; where replicas keep in
  /// step, in all of them. Not while an entry runs.
  virtual std::vector<RandomPosition> randomPositions() = 0;
  /// Those that have not run yet begin there, in all replicas.
  virtual void goOnDrawing(const std::vector<RandomPosition> &positions) = 0;

  // ---- Other tasks -------------------------------------------------------------

  /// Sums `count` doubles over all tasks, while the next entry already runs: give
  /// at most one at a time, then collect it. Without other tasks: nothing to do.
  virtual void startSum(double *values, int64_t count) = 0; // values: until finishSum
  virtual void finishSum() = 0;

  // ---- The end -----------------------------------------------------------------

  /// Whether every thread has come back from the last run; after a failure one may
  /// compute on, and the task must not be destroyed.
  virtual bool atRest() const { return true; }

  /// Rows of the timeline; empty unless config.timeline. Any time.
  virtual std::vector<const TimelineRow *> timelineRows() const = 0;

  /// Records why the task fails (the first reason counts), wakes everybody who
  /// waits, and breaks off the communicator. Any thread.
  virtual void fail(const std::string &message) noexcept;
  bool failed() const { return stop_.load(std::memory_order_acquire); }

protected:
  [[noreturn]] void throwFailure();
  std::string whyFailed();
  /// Says on stderr, or where the configuration wants it, what is slow.
  void warn(const std::string &message) const;

  const drt_program &program_;
  Communicator *const communicator_;
  const TaskConfig config_;
  std::atomic<bool> stop_{false}; // the task has failed

private:
  std::mutex failureMutex_;
  std::string failure_;
};

/// A task on the device that the executable is linked for.
std::unique_ptr<TaskRuntime> makeTask(const drt_program &program, Communicator *communicator, TaskConfig config);

} // namespace drt

#endif // DRT_CORE_TASK_H

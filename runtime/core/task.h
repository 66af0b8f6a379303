//===- task.h - One task of a plan at work --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_TASK_H
#define DRT_CORE_TASK_H

#include "collectives/communicator.h"
#include "core/counter.h"
#include "core/error.h"
#include "core/exchange.h"
#include "core/layout.h"
#include "core/memory.h"
#include "core/replica.h"
#include "core/timeline.h"
#include "drt/drt.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace drt {

struct TaskConfig {
  int32_t firstReplica = 0;
  int32_t localReplicas = 1;
  int32_t numReplicas = 1; // over all tasks
  /// Replicas of the tasks on this host that come before this task, and of all
  /// tasks on this host: which cores this task's threads take, and whether there are enough.
  int32_t hostOffset = 0;
  int32_t hostReplicas = 1;
  bool pin = true;
  uint64_t entropy = 0; // keys random operations without a seed
  bool timeline = false;
  double stallWarning = 60;                      // seconds; 0: never
  std::function<void(const std::string &)> warn; // null: stderr
};

/// The memory and the threads of one task. The thread that constructs it is
/// replica 0's, so a task with one replica starts no thread; run() belongs to it.
class TaskRuntime : private StallWatch {
public:
  /// `communicator`: null where the plan has one task; not owned.
  TaskRuntime(const drt_program &program, Communicator *communicator, TaskConfig config);
  ~TaskRuntime();
  TaskRuntime(const TaskRuntime &) = delete;
  TaskRuntime &operator=(const TaskRuntime &) = delete;

  const drt_program &program() const { return program_; }
  const TaskConfig &config() const { return config_; }
  Communicator *communicator() { return communicator_; }

  /// Null where the program has no entry of that name.
  const drt_entry *findEntry(std::string_view name) const;

  /// Of a variable held in shares: those of the task's replicas, side by side.
  void *variable(int32_t index) const { return variables_[index]; }
  const Layout &layout() const { return layout_; }
  int32_t localReplicas() const { return config_.localReplicas; }
  Replica &replica(int32_t localIndex) { return *replicas_[localIndex]; }

  /// Feed `feed` of the next run: replica i is given share0 + i * shareBytes
  /// (shareBytes 0: all are given the same). Must stay readable until run() returns.
  void setFeed(int32_t feed, const void *share0, int64_t shareBytes);

  /// Runs an entry in every replica and joins them. Throws what drt_fail or a
  /// lost task said; after that the task cannot run anything more.
  void run(const drt_entry &entry, int64_t step);

  /// Sums `count` doubles over all tasks, while the next entry already runs: give
  /// at most one at a time, then collect it. Without other tasks: nothing to do.
  void startSum(double *values, int64_t count); // values: until finishSum
  void finishSum();

  /// Copies task 0's variables to every task, those held in shares excepted.
  void broadcastVariables();

  /// All shares of a variable, whole, in task 0's `whole` (as many elements as its full_shape has; others may give
  /// null). Every task calls it.
  void gatherShares(int32_t variable, void *whole);
  /// The other way round: `whole` is task 0's, and must be there in every task; it is overwritten.
  void scatterShares(int32_t variable, void *whole);

  /// Whether every thread has come back from the last run; after a failure one may
  /// compute on, and the task must not be destroyed.
  bool atRest() const { return left_.reached(begun_ * static_cast<uint32_t>(config_.localReplicas - 1)); }

  /// Rows of the timeline so far; empty unless config.timeline. Not while an entry runs.
  std::vector<const TimelineRow *> timelineRows() const;

  // ---- For the C API -----------------------------------------------------------

  /// Records why the task fails (the first reason counts), wakes everybody who
  /// waits, and breaks off the communicator. Any thread.
  void fail(const std::string &message) noexcept;
  bool failed() const { return stop_.load(std::memory_order_acquire); }

  bool barrier(Replica &replica);
  void startBucket(Replica &replica, int32_t bucket);
  bool waitBucket(Replica &replica, int32_t bucket);

  /// Whether the bucket that runs lies reduced in replica 0's arena after waitBucket.
  bool reducedByCommunicator(const Replica &replica, int32_t bucket) {
    return communicator_ && !exchange(replica, bucket);
  }
  /// Null where the bucket's gradients are just summed.
  Exchange *exchange(const Replica &replica, int32_t index) { return bucket(*replica.entry, index).exchange.get(); }

  /// What a bucket's sum is divided by.
  int64_t divisor(const drt_bucket &bucket) const {
    return bucket.reduction == DRT_REDUCE_MEAN ? config_.numReplicas : 1;
  }

private:
  struct Bucket {
    Counter started; // by a replica, over all runs
    Counter reduced; // over the tasks, runs so far; with a communicator only
    std::unique_ptr<Exchange> exchange;
  };
  // What the communication thread does, in the order asked for.
  struct Job {
    const drt_entry *entry; // its buckets; null: the sum
    uint32_t run;
    int64_t step;
  };

  void replicaMain(int32_t localIndex);
  void enter(Replica &replica);
  void leave(uint32_t replicas);
  void communicationMain();
  void communicate(const Job &job);
  void communicate(const drt_bucket &plan, Bucket &state, int64_t step);
  void reduceScatter(const drt_bucket &plan, char *data);
  void gatherRows(const drt_bucket &plan);
  void gatherVariables(const drt_bucket &plan);
  Layout findLayout();
  bool needsLayout() const;
  void post(Job job);
  void drain();
  [[noreturn]] void throwFailure();
  void waiting(const char *operation, double seconds) override;
  Bucket &bucket(const drt_entry &entry, int32_t index) { return buckets_[&entry - program_.entries][index]; }

  const drt_program &program_;
  Communicator *const communicator_;
  const TaskConfig config_;
  const Layout layout_;

  Memory variableMemory_;
  int64_t sharedBytes_ = 0;              // of the variables that every task has; what is held in shares lies behind
  std::vector<char> shares_, allShares_; // on their way
  std::vector<void *> variables_;
  Memory arenaMemory_;
  std::vector<std::unique_ptr<Replica>> replicas_;

  // What runs: written by run() while every other replica is at rest.
  const drt_entry *entry_ = nullptr;
  std::vector<uint32_t> runs_;               // of each entry, so far
  std::vector<std::vector<Bucket>> buckets_; // of each entry
  int spins_ = 0;
  Counter go_;   // entries begun
  Counter left_; // replicas other than 0 that have ended one
  uint32_t begun_ = 0;
  Barrier barrier_;

  static constexpr uint32_t jobSlots = 8; // a run, a sum, and the next run at most
  Job jobs_[jobSlots];
  Counter asked_, finished_; // jobs
  uint32_t posted_ = 0;
  double *sum_ = nullptr;
  int64_t sumCount_ = 0;
  uint32_t sumJob_ = 0;

  std::atomic<bool> stop_{false}; // the task has failed
  std::atomic<bool> quit_{false}; // the threads shall end
  std::mutex failureMutex_;
  std::string failure_;
  std::atomic<int64_t> warnedNs_{0};

  std::unique_ptr<TimelineRow> communicationRow_;
  std::vector<std::thread> threads_;
  std::vector<int> mainCores_; // that the constructing thread ran on
};

} // namespace drt

#endif // DRT_CORE_TASK_H

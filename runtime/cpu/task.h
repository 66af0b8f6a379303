//===- task.h - A task on the processor's cores ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_TASK_H
#define DRT_CPU_TASK_H

#include "core/counter.h"
#include "core/layout.h"
#include "core/memory.h"
#include "core/task.h"
#include "cpu/exchange.h"
#include "cpu/joint_memory.h"
#include "cpu/pipeline.h"
#include "cpu/replica.h"
#include "cpu/row_exchange.h"
#include "cpu/served_replicas.h"
#include "drt/drt.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace drt {

/// Replicas are threads that share the task's variables. The thread that constructs it is
/// replica 0's, so a task with one replica starts no thread; enqueue belongs to it, and returns when the entry has run.
class CpuTask final : public TaskRuntime, private StallWatch {
public:
  CpuTask(const drt_program &program, Communicator *communicator, TaskConfig config);
  ~CpuTask() override;

  void setFeed(int32_t feed, const void *share0, int64_t shareBytes) override;
  void enqueue(const drt_entry &entry, int64_t step) override;
  void run(const drt_entry &entry, int64_t step) override;
  void answer(const drt_entry &entry) override;
  void endAlone(const drt_entry &entry) override;
  void wait() override;
  int32_t stepsAhead() const override { return served_ ? servedAhead : 0; }
  const void *fetched(int32_t localReplica, const drt_fetch &fetch) const override {
    if (served_ && served_->hasFetch(fetch))
      return served_->fetched(localReplica, fetch);
    return replicas_[localReplica]->arena + fetch.arena_offset;
  }

  void serve(FeedReplica feed, int64_t firstStep) override;
  void stopServing() override;
  GradientCounts gradientCounts() const override { return served_ ? served_->counts() : GradientCounts(); }
  const ReplicaUse *replicaUse(int32_t localReplica) const override { return replicas_[localReplica]->use.get(); }
  const ServedUse *servedUse(int32_t localReplica) const override {
    return served_ ? served_->use(localReplica) : nullptr;
  }
  std::vector<Lateness> lateness() const override { return served_ ? served_->lateness() : std::vector<Lateness>(); }
  void fail(const std::string &message) noexcept override;

  void *variable(int32_t index) const override { return variables_[index]; }
  void broadcastVariables() override;
  void gatherPart(int32_t variable, Range bytes, void *part) override;
  void scatterPart(int32_t variable, Range bytes, const void *part) override;

  std::vector<RandomPosition> randomPositions() override {
    return served_ && served_->hasStarted() ? served_->randomPositions() : replicas_[0]->randomStates.positions();
  }
  void goOnDrawing(const std::vector<RandomPosition> &positions) override {
    drawingBegin_ = positions;
    for (const auto &replica : replicas_)
      replica->randomStates.goOn(positions);
  }

  void startSum(double *values, int64_t count) override;
  void finishSum() override;

  bool atRest() const override {
    return left_.reached(begun_ * static_cast<uint32_t>(config_.localReplicas - 1)) && (!served_ || served_->ended());
  }
  std::vector<const TimelineRow *> timelineRows() const override;

  // ---- For replicas that servers serve -----------------------------------------

  ServedReplicas *served() { return served_.get(); }
  /// Where random operations begin in this start (goOnDrawing); nothing where at their seeds.
  const std::vector<RandomPosition> &drawingBegin() const { return drawingBegin_; }
  int64_t arenaStride() const { return replicas_[0]->arena_stride; }
  void *const *variables() const { return variables_.data(); }
  /// Runs an entry in the calling thread. False: the replica has left it on its way.
  bool runEntry(Replica &replica, const drt_entry &entry);
  /// The calling thread is local replica i's.
  void bindReplica(int32_t localIndex);
  /// The calling thread is one of those that compute local replica i's step.
  void bindCore(int32_t localIndex, int core);
  /// The calling thread is no replica's, and takes whatever core is free.
  void leaveCores() const;
  /// Cores that compute each replica's step together.
  int coresPerReplica() const { return std::max(1, program_.cores_per_replica); }
  /// As many turns as a replica's wait may take before it sleeps.
  int spins() const { return spins_; }
  void warnOfStall(const std::string &message) const { warn(message); }

  // ---- For the C API -----------------------------------------------------------

  bool barrier(Replica &replica);
  void startBucket(Replica &replica, int32_t bucket);
  /// False where the task failed meanwhile.
  bool pullRows(Replica &replica, int32_t bucket, RowRequest request);
  bool pushRows(Replica &replica, int32_t bucket, const RowPush &push);
  bool waitBucket(Replica &replica, int32_t bucket);
  /// Whether other tasks have replicas whose memory this one does not reach.
  bool isApart() const { return communicator_ && !joint_; }
  /// Whether this is the plan's task of that number; who has no other tasks is all of them.
  bool isTask(int32_t number) const { return !communicator_ || layout_.rank == number; }

  /// Whether the bucket that runs lies reduced in replica 0's arena after waitBucket.
  bool reducedByCommunicator(const Replica &replica, int32_t bucket) { return isApart() && !exchange(replica, bucket); }
  /// Null where the bucket's gradients are just summed.
  Exchange *exchange(const Replica &replica, int32_t index) { return bucket(*replica.entry, index).exchange.get(); }

  /// Null unless the bucket's owners update it piece by piece.
  PipelinedBucket *pipelined(const Replica &replica, int32_t index) {
    return bucket(*replica.entry, index).pipelined.get();
  }
  /// Calls update(range) for the replica's elements of a pipelined bucket's member, as they come. False where the task
  /// failed meanwhile.
  template <class Update>
  bool updatePipelined(Replica &replica, int32_t index, int64_t offset, int64_t count, Update update) {
    const drt_entry &entry = *replica.entry;
    const char *name = entry.buckets[index].name;
    const Range elements = rangeOf(count, config_.localReplicas, replica.local_index);
    return bucket(entry, index)
        .pipelined->updateMember(offset, count, elements, runs_[entryIndex(entry)], {stop_, 0, this, name}, update);
  }

  /// What a bucket's sum is divided by.
  int64_t divisor(const drt_bucket &bucket) const {
    return bucket.reduction == DRT_REDUCE_MEAN ? config_.numReplicas : 1;
  }

private:
  // Updates are done without the trainer's thread, which has a core with a replica.
  static constexpr int32_t servedAhead = 16;

  struct Bucket {
    Counter started; // by a replica, over all runs
    Counter reduced; // over the tasks, runs so far; with a communicator only
    std::unique_ptr<Exchange> exchange;
    std::unique_ptr<PipelinedBucket> pipelined;
  };
  // What the communication thread does, in the order asked for.
  struct Job {
    const drt_entry *entry; // its buckets; null: the sum
    uint32_t run;
    int64_t step;
    bool answers = false; // another task alone runs it
  };

  void awaitServed();
  void makeBucket(const drt_bucket &plan, Bucket &bucket);
  void replicaMain(int32_t localIndex);
  void leave(uint32_t replicas);
  bool beginJointRun(const drt_entry &entry);
  /// A wait for the replicas of a joint plan. False where the task has failed, or another: then this one has, too.
  template <class Wait> bool awaitOthers(Replica &replica, const char *operation, Wait wait);
  void communicationMain();
  void communicate(const Job &job);
  void communicate(const drt_bucket &plan, Bucket &state, int64_t step);
  /// Elements of a member that a task has of it alone: those that it owns, or its replicas' shares.
  Range partOf(int32_t rank, const drt_member &member) const;
  /// What each task has alone of a bucket's members; `pieceOf` says where a part of a member lies.
  template <class PieceOf> Pieces piecesOf(const drt_bucket &plan, PieceOf pieceOf) const {
    Pieces pieces(static_cast<size_t>(layout_.numTasks()));
    for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
      for (int32_t m = 0; m < plan.num_members; ++m)
        if (const Range part = partOf(rank, plan.members[m]); !part.empty())
          pieces[static_cast<size_t>(rank)].push_back(pieceOf(plan.members[m], part));
    return pieces;
  }
  void gatherRows(const drt_bucket &plan);
  /// `asks`: whether this task's replicas do; else it only answers.
  void pullRows(const drt_bucket &plan, bool asks);
  std::vector<PulledTable> tablesOf(const drt_bucket &plan) const;
  void pushRows(const drt_bucket &plan);
  std::vector<int64_t> replicasOfTasks() const;
  Layout findLayout();
  bool needsLayout() const;
  /// Whether an entry asks other tasks for rows.
  bool pullsRows(const drt_entry &entry) const;
  /// Task 0 says whether it runs the entry once more.
  bool agreeToRun(const drt_entry &entry, bool runs);
  void post(Job job);
  void drain();
  // Of the communication thread, in a test.
  void delay() {
    if (communicationDelays_)
      communicationDelays_->pause();
  }
  void waiting(const char *operation, double seconds) override;
  int32_t entryIndex(const drt_entry &entry) const { return static_cast<int32_t>(&entry - program_.entries); }
  Bucket &bucket(const drt_entry &entry, int32_t index) { return buckets_[entryIndex(entry)][index]; }

  const Layout layout_;

  /// Zeroed memory: where other tasks reach it, if they reach any.
  char *newMemory(int64_t bytes);

  std::vector<Memory> memory_; // what newMemory gave that is this task's alone
  char *variableMemory_ = nullptr;
  int64_t sharedBytes_ = 0; // of the variables that every task has; what is the task's own lies behind
  RowExchange rowExchange_; // the communication thread's
  std::vector<void *> variables_;
  char *arenaMemory_ = nullptr;
  // That the constructing thread ran on; threads of replicas' teams read it as they begin, which may be late.
  std::vector<int> mainCores_;
  std::vector<std::unique_ptr<Replica>> replicas_;

  std::unique_ptr<JointMemory> joint_;                // null unless the plan is
  std::vector<std::pair<const char *, int64_t>> fed_; // by feed what setFeed gave, of a joint plan's replica
  bool alone_ = false;                                // what runs is run by this task alone

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
  int64_t enqueuedStep_ = 0; // the newest; of the run, also where replicas count their own
  uint32_t sumJob_ = 0;

  std::atomic<bool> quit_{false}; // the threads shall end
  std::atomic<int64_t> warnedNs_{0};

  std::vector<RandomPosition> drawingBegin_;

  std::unique_ptr<TimelineRow> communicationRow_;
  std::unique_ptr<Delays> communicationDelays_;
  std::unique_ptr<Pipeline> pipeline_; // with a communicator; the communication thread's
  std::vector<std::thread> threads_;
  std::unique_ptr<ServedReplicas>
      served_; // null: replicas take every step together; last, since its threads use the rest
};

} // namespace drt

#endif // DRT_CPU_TASK_H

//===- task.h - A task on CUDA's devices ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_TASK_H
#define DRT_CUDA_TASK_H

#include "core/layout.h"
#include "core/memory.h"
#include "core/task.h"
#include "cuda/device_replica.h"
#include "cuda/tuning.h"
#include "cuda/worker.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace drt::cuda {

/// A replica is a device. Several of them have a thread of the host each. Two runs may be under way, each with a set
/// of feed buffers.
class CudaTask final : public TaskRuntime {
public:
  CudaTask(const drt_program &program, Communicator *communicator, TaskConfig config);
  ~CudaTask() override;

  void setFeed(int32_t feed, const void *share0, int64_t shareBytes) override;
  void enqueue(const drt_entry &entry, int64_t step) override;
  void wait() override;
  int32_t stepsAhead() const override { return 1; }
  const void *fetched(int32_t localReplica, const drt_fetch &fetch) const override;

  /// sendVariables sends to replica 0: the others have them after broadcastVariables.
  void *variable(int32_t index) const override;
  void fetchVariables() override;
  void sendVariables() override;
  void broadcastVariables() override;
  void gatherPart(int32_t variable, Range bytes, void *part) override;
  void scatterPart(int32_t variable, Range bytes, const void *part) override;

  std::vector<RandomPosition> randomPositions() override;
  void goOnDrawing(const std::vector<RandomPosition> &positions) override;

  void startSum(double *values, int64_t count) override;
  void finishSum() override;

  bool atRest() const override;
  std::vector<const TimelineRow *> timelineRows() const override;

  DeviceReplica &replica(int32_t localIndex) { return *replicas_[static_cast<size_t>(localIndex)]; }

private:
  struct Run {
    const drt_entry *entry;
    int64_t step;
    int set;
    uint64_t everywhere = 0; // the communication's job that ends when every task has enqueued it; 0: none is needed
  };
  struct Wait {
    std::function<bool()> done;
    std::function<std::string()> what; // is waited for
    std::function<bool()> together;    // whether all ranks are at it, so that only a lost one can delay it; or null
  };

  /// In the replicas' threads, at the same time; returns when all have done it. After a failure a thread that hangs is
  /// left behind, so `work` holds what it needs and no reference to what ends with its caller.
  void inEachThread(const std::function<void(int32_t localIndex)> &work);
  void inEachReplica(const std::function<void(DeviceReplica &)> &work);
  void connect();
  /// A job for another thread: what it throws is why the task fails.
  std::function<void()> attempt(std::function<void()> work);
  uint64_t communicate(std::function<void()> collective);
  void await(const Wait &wait);
  void awaitIdle(const char *what);
  bool runEnded(const Run &run);
  std::string lateReplicas(const Run &run);
  void abortRanks() noexcept;
  /// Ends the devices' waits for lost ranks, and throws why the task has failed.
  [[noreturn]] void breakOff();

  void forEachShare(const std::function<void(DeviceReplica &, int32_t variable, char *share)> &copy);
  const Layout &layout();
  void awaitCommunication();

  const Memory mirror_;              // of the variables
  std::vector<Memory> shareMirrors_; // by variable: the task's replicas' shares of it; else empty
  std::optional<Layout> layout_;     // once it was asked for
  // Whether there still is a task: a thread that was left behind asks before it says why it has failed.
  struct Life {
    std::mutex mutex;
    bool over = false;
  };
  class Living {
  public:
    ~Living() {
      std::lock_guard lock(life->mutex);
      life->over = true;
    }
    const std::shared_ptr<Life> life = std::make_shared<Life>();
  };

  std::unique_ptr<Tuning> tuning_;       // null unless algorithms are timed
  std::unique_ptr<SharedDevice> shared_; // null unless replicas share a device
  std::vector<std::unique_ptr<DeviceReplica>> replicas_;
  std::vector<std::unique_ptr<Worker>> workers_; // one a replica; none where there is one replica
  std::unique_ptr<Worker> communication_;        // speaks to the other tasks
  uint64_t sumJob_ = 0, lastJob_ = 0;
  // What is summed: its job's, too, which may be at it when the task and who asked for the sum are gone.
  std::shared_ptr<std::vector<double>> sum_;
  double *sumOf_ = nullptr;

  std::vector<GivenFeed> feeds_;
  std::deque<Run> runs_; // under way
  uint64_t enqueued_ = 0;
  Run waited_ = {}; // the run that was waited for last
  Living living_;
};

} // namespace drt::cuda

#endif // DRT_CUDA_TASK_H

//===- served_replicas.h - Replicas at their own pace, and their server ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_SERVED_REPLICAS_H
#define DRT_CPU_SERVED_REPLICAS_H

#include "core/counter.h"
#include "core/memory.h"
#include "core/task.h"
#include "cpu/replica.h"
#include "servers/remote_parameter_server.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace drt {

class CpuTask;

/// The replicas of a program with servers that serve on their own (drt_program.servers): threads that each run the
/// entry "step" again and again, with arenas of their own, beside those that take other entries in step. The server is
/// in task 0, whose variables are those that all train. Its replica has an arena too, and no thread: it runs the entry
/// "update" in that of a replica which pushes. Each replica of another task, and that task's trainer, has a thread
/// there that answers it.
class ServedReplicas final : private StallWatch {
public:
  explicit ServedReplicas(CpuTask &task);
  ~ServedReplicas();

  /// Starts the threads. See TaskRuntime::serve.
  void start(TaskRuntime::FeedReplica feed, int64_t firstStep);

  bool hasStarted() const { return !replicas_.empty(); }
  const drt_entry &step() const { return *step_; }
  bool hasFetch(const drt_fetch &fetch) const { return isOf(*step_, fetch) || isOf(*update_, fetch); }

  void allowUpdate();
  /// Updates that were allowed, and not waited for.
  int64_t outstanding() const { return outstanding_; }
  /// False: stopped.
  bool waitForUpdate();
  /// Of the update that was waited for last. Numbers only.
  const void *fetched(int32_t replica, const drt_fetch &fetch) const;
  GradientCounts counts() const;
  /// Null unless the task is metered.
  const ServedUse *use(int32_t replica) const {
    return uses_.empty() ? nullptr : uses_[static_cast<size_t>(replica)].get();
  }
  /// Where random operations of the last update that was made stand, and of its gradients; in other tasks than the
  /// server's where they began.
  std::vector<RandomPosition> randomPositions();
  std::vector<Lateness> lateness() const { return local_ ? local_->lateness() : std::vector<Lateness>(); }

  /// Sends the replicas away; any thread.
  void stop() noexcept;
  /// Whether all of them have come back.
  bool ended() const;
  /// Waits for that.
  void join();

  std::vector<const TimelineRow *> timelineRows() const;

  // ---- For the C API: called by the replica's own thread -------------------------

  bool pull(Replica &replica, void *const *tensors);
  bool push(Replica &replica, void *const *gradients);
  bool takeToken(Replica &replica);
  void take(void *const *results) { local_->take(results); }

private:
  /// Where the numbers that an entry gives are in a report: the offset of each fetch, -1 for what is not reported.
  struct Report {
    explicit Report(const drt_entry &entry);
    void read(const drt_entry &entry, const char *arena, char *report) const;

    std::vector<int64_t> offsets;
    int64_t bytes = 0;
  };

  static bool isOf(const drt_entry &entry, const drt_fetch &fetch) {
    return &fetch >= entry.fetches && &fetch < entry.fetches + entry.num_fetches;
  }
  bool isServer() const;
  int32_t firstReplica() const;
  void makeArenas();
  void makeReplicas();
  ServedSizes sizes() const;
  void serveHere(std::vector<std::unique_ptr<Channel>> channels, const std::vector<int> &counts);
  void serveElsewhere(std::vector<std::unique_ptr<Channel>> channels);
  std::vector<int> countChannels() const;
  void replicaMain(int32_t index);
  void answerMain(size_t channel, int32_t listener);
  bool feed(Replica &replica, int32_t index, int64_t step);
  bool update();
  void waiting(const char *operation, double seconds) override;
  template <class Body> bool guarded(Body body) noexcept;
  template <class Wait> bool waitFor(Replica &replica, const char *operation, Wait wait);
  using Account = std::atomic<int64_t> ServedUse::*;
  template <class Body> bool accounted(const Replica &replica, Account account, Body body);

  CpuTask &task_;
  const drt_entry *const step_, *const update_;
  const Report report_, updateReport_;
  TaskRuntime::FeedReplica feed_;
  int64_t firstStep_ = 0, updates_ = 0;

  Memory arenaMemory_; // where no other task reads it
  char *arenas_ = nullptr;
  std::vector<std::unique_ptr<Replica>> replicas_; // the server's last
  std::vector<std::unique_ptr<ServedUse>> uses_;   // of each replica but the server's; empty unless metered
  int64_t movedBytes_ = 0;                         // of a step, where they are
  ServedSizes sizes_;
  std::unique_ptr<ParameterServer> server_;
  LocalParameterServer *local_ = nullptr;          // server_, in task 0
  RemoteParameterServer *remote_ = nullptr;        // server_, in others
  std::vector<std::unique_ptr<Channel>> channels_; // of task 0, to those of other tasks
  std::vector<std::thread> threads_;
  std::atomic<bool> stopped_{false};
  Counter ended_;
  std::atomic<int64_t> warnedNs_{0};

  std::mutex randomMutex_;
  RandomStates pushed_; // replica 0's, behind the step that it has pushed last
  std::vector<RandomPosition> randomPositions_;

  int64_t outstanding_ = 0;
  std::vector<std::vector<char>> reported_; // of each replica
  std::vector<char> updateReported_;
};

} // namespace drt

#endif // DRT_CPU_SERVED_REPLICAS_H

//===- device_replica.h - A replica and its device ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_DEVICE_REPLICA_H
#define DRT_CUDA_DEVICE_REPLICA_H

#include "core/device_memory.h"
#include "core/task.h"
#include "cuda/device.h"
#include "cuda/feeds.h"
#include "cuda/host_calls.h"
#include "cuda/kernels.h"
#include "cuda/nccl_rank.h"
#include "cuda/replica.h"
#include "cuda/shared_device.h"
#include "cuda/spans.h"

#include <array>
#include <memory>
#include <vector>

namespace drt::cuda {

/// All of a replica: its memory, its streams, its graphs. Its own thread calls it, but for finished, take and the
/// readers, which are the launcher's. Everything throws drt::Error.
class DeviceReplica final : public Replica {
public:
  static DeviceReplica &of(drt_replica *replica) { return *static_cast<DeviceReplica *>(replica); }

  /// Takes the device, allocates everything, and prepares every entry.
  DeviceReplica(const drt_program &program, const TaskConfig &config, int32_t localIndex, Tuning *tuning = nullptr);

  const Device &device() const { return device_; }

  // ---- Runs --------------------------------------------------------------------

  /// Copies the feeds to their set, and launches the set's graph of the entry; the first time it is captured.
  void enqueue(const drt_entry &entry, int set, int64_t step, const std::vector<GivenFeed> &given);

  /// Whether the set's last run has ended. Throws what the device or NCCL say went wrong.
  bool finished(int set);
  /// When it has: puts it into the timeline.
  void take(int set);

  /// In pinned memory, from the set's last run.
  const void *fetched(int set, int32_t fetch) const;

  // ---- Variables ---------------------------------------------------------------
  // Enqueued behind what runs; finished with synchronize.

  void fetchVariables(char *to);
  void sendVariables(const char *from);
  /// Replica 0's to all, but for those that are in shares.
  void broadcastVariables();
  /// One of them.
  void fetchVariable(int32_t variable, char *to);
  void sendVariable(int32_t variable, const char *from);
  /// Whether all that was enqueued has ended. Throws as finished does.
  bool idle();

  // ---- Random numbers: while nothing is under way ---------------------------------

  std::vector<RandomPosition> randomPositions();
  void goOnDrawing(const std::vector<RandomPosition> &positions);

  // ---- Other replicas ----------------------------------------------------------

  /// Makes every collective of the program once: ranks connect at a collective's first time, which a capture forbids.
  /// All replicas, enqueued; before variables have values.
  void connect();

  NcclRank nccl;
  SharedDevice *shared = nullptr; // instead of NCCL; not owned

  /// Ends the graphs. False: the driver keeps some, and NCCL would wait for ever for the collectives in them.
  bool dropGraphs() noexcept;
  /// Ends: nothing is under way, no graph is left, and all replicas of the task come here together.
  void close();
  /// The communicator, for who aborts those of all replicas: nothing here uses it any more. Null: there is none, or the
  /// device has failed, and an abort would wait for ever.
  ncclComm_t giveUp() noexcept;

  /// Rows of the timeline; empty without one.
  std::vector<const TimelineRow *> rows() const;

  // ---- For the C API, in an entry's host code --------------------------------------

  void beginScope(int32_t index);
  void endScope();
  void launch(int32_t kernel, void *const *arguments);
  void copy(void *to, const void *from, int64_t bytes);
  void callOnHost(drt_routine routine, const int64_t *numbers, void *const *tensors, const int64_t *bytes,
                  int32_t inputs, int32_t count);
  void *randomState(int32_t state, int64_t seed, int64_t seed2);
  void startBucket(int32_t bucket);
  void waitBucket(int32_t bucket);
  const void *bucketResult(int32_t bucket) const;
  /// In device memory: the replica's number among all.
  void *indexAddress() const { return index_.data(); }

private:
  // What is captured of an entry for one set of feed buffers.
  struct Captured {
    GraphExec graph;
    Spans spans;
  };
  struct Set {
    const Event *begun = nullptr; // of the last run; with a timeline
    Event done;
    const drt_entry *entry = nullptr; // of the last run
    int64_t step = 0;
    int64_t hostRun = 0; // of its host calls
    char *fetches = nullptr;
  };
  struct Timeline {
    TimelineRow compute, communication, copies;
    Clock clock;
    // When runs began: one more than runs may be under way, as a run's is measured from the one before it.
    Event begun[feedSets + 1];
    uint64_t runs = 0;
  };

  void allocate();
  void prepare();
  void rehearse();
  void uploadRandomStates();
  void runHostCode(const drt_entry &entry, int set);
  bool leaves(const drt_entry &entry);
  void capture(const drt_entry &entry, int set, Captured &into);
  void enqueueEntry(const drt_entry &entry, int set);
  void endWork() noexcept;
  void communicate(const drt_bucket &bucket, CUstream on);
  void communicateShared(const drt_bucket &bucket);
  /// Whether what is not a library's call is enqueued.
  bool enqueues() const { return !preparing && !rehearsing_; }
  const drt_bucket &bucket(int32_t index) const { return entry->buckets[index]; }
  Captured &captured(const drt_entry &entry, int set) { return captured_[&entry - program_.entries][set]; }

  const drt_program &program_;
  const TaskConfig &config_;
  const Device device_;
  std::unique_ptr<Timeline> timeline_;
  Stream compute_, communication_;

  DeviceMemory arena_, variables_, states_, index_, workspace_;
  PinnedMemory fetches_;
  FeedBuffers feedBuffers_;
  HostCalls hostCalls_;
  Kernels kernels_;
  std::vector<void *> variablePointers_;
  std::vector<const void *> feedPointers_;
  std::vector<std::array<uint32_t, 7>> randomStates_; // as they are uploaded
  std::vector<bool> prepared_, seeded_;               // of the random operations; whether by seeds of their own

  std::vector<std::array<Captured, feedSets>> captured_; // by entry
  std::vector<size_t> numSpans_;                         // of each entry
  Set sets_[feedSets];

  // While host code runs.
  bool rehearsing_ = false;
  std::vector<Event> ready_, reduced_; // of a bucket: written by this replica; reduced
  const Event *lastReduced_ = nullptr;
  Spans *spans_ = nullptr; // of what is captured; null without a timeline
  std::vector<size_t> open_;

  // The last member, so that it goes first, also where the constructor fails: what libraries hold belongs to a context
  // that device_ gives back, and what still runs may use the memory.
  class Work {
  public:
    explicit Work(DeviceReplica &replica) : replica_(replica) {}
    ~Work() { replica_.endWork(); }
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

  private:
    DeviceReplica &replica_;
  } work_{*this};
};

} // namespace drt::cuda

#endif // DRT_CUDA_DEVICE_REPLICA_H

//===- local_parameter_server.h - A server in its replicas' process -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_SERVERS_LOCAL_PARAMETER_SERVER_H
#define DRT_SERVERS_LOCAL_PARAMETER_SERVER_H

#include "core/counter.h"
#include "core/memory.h"
#include "drt/drt.h"
#include "servers/parameter_server.h"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace drt {

struct LocalServerConfig {
  const drt_servers *servers = nullptr; // not owned
  int32_t replicas = 1;
  /// Memory and bytes of each of drt_servers.pulled.
  struct Variable {
    const void *data;
    int64_t bytes;
  };
  std::vector<Variable> variables;
  std::vector<const char *> tables; // memory of each of drt_servers.tables
  int64_t reportBytes = 0;
  /// Of what an update itself says (say); 0: it says nothing.
  int64_t updateReportBytes = 0;
  /// Who waits for updates: each is told of all of them.
  int32_t listeners = 1;
  /// Computes one update, in the thread of the replica whose gradient made it complete, while nobody pulls. Calls take.
  /// False: it failed.
  std::function<bool()> update;
  StallWatch *watch = nullptr; // may be null
  /// Turns that a replica looks for what it waits for before it sleeps (Patience).
  int spins = 0;
};

/// Threads hand each other pointers under a lock. The gradients of an update are kept apart until it is complete and
/// then added up in the order of replicas, so that the sum depends on which they are, and not on when they came.
///
/// Updates run when the trainer has allowed them: with none allowed the variables are at rest, to be saved or
/// evaluated.
class LocalParameterServer final : public ParameterServer {
public:
  explicit LocalParameterServer(LocalServerConfig config);

  std::optional<int64_t> pull(int32_t replica, void *const *values, void *const *indices) override;
  bool push(int32_t replica, int64_t version, const void *const *gradients, const void *report) override;
  bool takeToken(int32_t replica) override;
  GradientCounts counts() const override;
  /// Of each replica.
  std::vector<Lateness> lateness() const;

  /// As pull, without a copy: `read` is called with the version while no update runs. False: stopped.
  bool readVariables(const std::function<void(int64_t version)> &read);

  /// What a pull of variables at this moment gives; those of one version are one. Null: stopped. `beside` is called
  /// while no update runs, where it is given.
  struct Snapshot {
    int64_t version = -1;
    std::vector<Memory> values;
  };
  std::shared_ptr<const Snapshot> snapshot(const std::function<void()> &beside = nullptr);

  /// As push, in two parts: memory that gradients are written to without anybody waiting, then that.
  Memory newGradients();
  Memory copyOf(const void *const *gradients);
  char *gradient(const Memory &gradients, int32_t index) const {
    return gradients.data() + offsets_[static_cast<size_t>(index)];
  }
  bool push(int32_t replica, int64_t version, Memory gradients, const void *report);

  const LocalServerConfig &config() const { return config_; }

  /// Of the update that runs: the reduced gradients, one for each of drt_servers.gradients.
  void take(void *const *results);
  /// Of the update that runs: what it says, updateReportBytes of it. waitForUpdate gives it behind the reports of its
  /// gradients.
  void say(const void *report);

  /// Whether takeToken would return at once.
  bool hasToken(int32_t replica) const;

  void allowUpdate() override;
  bool waitForUpdate(std::vector<std::vector<char>> &reports) override { return waitForUpdate(0, reports); }
  bool waitForUpdate(int32_t listener, std::vector<std::vector<char>> &reports);
  void stop() override;

private:
  struct Contribution {
    int32_t replica;
    int64_t clock; // steps of the replica before this one
    Memory gradients;
    std::vector<char> report;
    int64_t pushedNs;
  };
  using Update = std::vector<Contribution>;

  void aggregate(const drt_gradient &gradient, const std::vector<const char *> &parts, void *out);
  bool isComplete(const Update &update) const;
  bool isTokenThere(int32_t replica) const;
  Update &openUpdate(int64_t clock);
  void noteLast(const Update &update);
  bool applyOldest(std::unique_lock<std::mutex> &lock);
  template <class Condition>
  bool wait(std::unique_lock<std::mutex> &lock, const char *operation, int spins, Condition condition);

  const LocalServerConfig config_;
  std::vector<int64_t> offsets_; // of each gradient in a contribution, in bytes
  int64_t bytes_ = 0;            // of a contribution

  mutable std::mutex mutex_;
  Counter changes_; // of what somebody may wait for
  std::atomic<bool> stopped_{false};
  /// Updates in their order: the first ones are complete and wait for their turn, those behind them are being collected
  /// (several where replicas are ahead of the slowest).
  std::deque<Update> updates_;
  std::vector<Memory> spare_;   // contributions' memory that is free
  std::vector<int64_t> clocks_; // of each replica: gradients pushed
  /// Updates that are done, that have begun, that may be done; those that wait, complete, for their turn.
  int64_t applied_ = 0, begun_ = 0, allowed_ = 0, complete_ = 0;
  int64_t tokens_ = 0;
  GradientCounts counts_;
  std::vector<Lateness> lateness_;                     // of each replica
  int64_t completedNs_ = 0;                            // when the last update had its gradients
  std::deque<std::vector<std::vector<char>>> reports_; // of updates that somebody has not waited for
  int64_t oldestReport_ = 0;                           // the update of the first of them
  std::vector<int64_t> heard_;                         // of each listener: updates waited for
  const Update *current_ = nullptr;                    // in update()
  Memory side_;                                        // of an update: gradients side by side, for aggregators
  std::vector<char> said_;                             // by the update that runs

  std::shared_mutex values_; // of the variables
  int64_t version_ = 0;      // updates that they have seen; under values_

  std::mutex copying_; // guards snapshot_
  std::mutex free_;    // guards freeSnapshots_
  std::vector<std::unique_ptr<Snapshot>> freeSnapshots_;
  std::shared_ptr<Snapshot> snapshot_; // of the version that was asked for last
};

} // namespace drt

#endif // DRT_SERVERS_LOCAL_PARAMETER_SERVER_H

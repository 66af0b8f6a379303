//===- remote_parameter_server.h - A server in another process ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The same server for replicas of other tasks: each has a channel to the server's process, where a thread of its own
// asks LocalParameterServer what comes over it. So what a gradient counts for is decided in one place, wherever it
// comes from. The trainer of such a task has a channel too, and hears of updates over it.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_SERVERS_REMOTE_PARAMETER_SERVER_H
#define DRT_SERVERS_REMOTE_PARAMETER_SERVER_H

#include "collectives/channel.h"
#include "servers/local_parameter_server.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace drt {

/// What both ends know of the messages.
struct ServedSizes {
  const drt_servers *servers = nullptr; // not owned
  std::vector<int64_t> variables;       // bytes of each of drt_servers.pulled
  int64_t reportBytes = 0;
  int64_t updateReportBytes = 0; // 0: updates have none of their own
};

/// A task's end. Errors of channels are thrown (channel.h).
class RemoteParameterServer final : public ParameterServer {
public:
  /// One channel for each replica from `firstReplica` on, and one more for the trainer.
  RemoteParameterServer(ServedSizes sizes, int32_t firstReplica, std::vector<std::unique_ptr<Channel>> channels)
      : sizes_(std::move(sizes)), firstReplica_(firstReplica), channels_(std::move(channels)),
        wantsToken_(channels_.size()), waitedNs_(channels_.size()), asked_(channels_.size()) {}

  std::optional<int64_t> pull(int32_t replica, void *const *values, void *const *indices) override;
  bool push(int32_t replica, int64_t version, const void *const *gradients, const void *report) override;
  bool takeToken(int32_t replica) override;
  bool waitForUpdate(std::vector<std::vector<char>> &reports) override;

  /// How long the replica's pulls have waited for a token, and for the server to answer, so far. The replica's thread.
  int64_t waitedNs(int32_t replica) const { return waitedNs_[static_cast<size_t>(replica - firstReplica_)]; }

  /// Whoever uses the replica's channel, or the trainer's, asks for nothing more.
  void leave(int32_t replica);
  void leaveAsTrainer();

private:
  /// Rows that a replica asks for, of each table each once. The replica's thread.
  struct Asked {
    std::vector<std::unordered_map<int64_t, int64_t>> places; // of each row of each table, among `rows`
    std::vector<int64_t> counts;                              // of each table
    std::vector<int64_t> rows;                                // those of all tables, one table's behind the other's
    std::vector<char> received;
  };
  void collect(Asked &asked, void *const *indices) const;

  Channel &channelOf(int32_t replica) { return *channels_[static_cast<size_t>(replica - firstReplica_)]; }

  const ServedSizes sizes_;
  const int32_t firstReplica_;
  const std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<char> wantsToken_; // of each replica: before its next pull
  std::vector<int64_t> waitedNs_;
  std::vector<Asked> asked_; // by each replica
};

/// The server's end: answers what comes over the channel until the other end leaves. `listener`: of a trainer.
void answer(LocalParameterServer &server, Channel &channel, const ServedSizes &sizes, int32_t listener);

} // namespace drt

#endif // DRT_SERVERS_REMOTE_PARAMETER_SERVER_H

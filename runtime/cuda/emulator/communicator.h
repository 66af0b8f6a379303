//===- communicator.h - A rank of the emulated NCCL -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_COMMUNICATOR_H
#define DRT_CUDA_EMULATOR_COMMUNICATOR_H

#include "cuda/emulator/machine.h"
#include "cuda/emulator/wire.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace drt::cuda::emulated {

/// Collectives run in the order in which they were enqueued, whatever their streams. All state is under the machine's
/// lock; a thread of its own talks to the hub. After an error collectives do not end, until abort().
class Communicator : public std::enable_shared_from_this<Communicator> {
public:
  Communicator(int rank, int ranks, int device) : rank_(rank), ranks_(ranks), device_(device) {}

  /// Begins to join the ranks that meet at `hub`.
  void start(const std::string &hub);
  const std::string &hub() const { return hub_; }
  /// Waits until it has joined, or has failed.
  void waitJoined(Lock &lock);

  int device() const { return device_; }
  /// ncclInProgress while it joins.
  ncclResult_t error() const { return error_; }
  const std::string &message() const { return message_; }

  /// Enqueues a collective. `send` and `receive` are device memory; shares are in place, or beside each other.
  void enqueue(Stream &stream, Request request, const void *send, void *receive);

  void fail(ncclResult_t status, std::string message);
  void abort();
  /// Says goodbye; the other ranks must, too.
  void close();
  /// Returns when no graph holds one of its collectives, as NCCL does where a communicator ends.
  void waitForGraphs(Lock &lock);

private:
  struct Exchange {
    Request request;
    std::vector<char> data;
    bool posted = false, finished = false;
  };
  Progress advance(uint64_t turn, const std::shared_ptr<Exchange> &exchange, const void *send, void *receive);
  void talk(const std::string &hub);
  bool await(Reply &reply, std::vector<char> &data);

  const int rank_, ranks_, device_;
  ncclResult_t error_ = ncclInProgress;
  std::string message_;
  bool aborted_ = false, closing_ = false;
  std::set<Collective> connected_; // that ranks have connected for
  std::string hub_;
  uint64_t issued_ = 0, turn_ = 0;
  std::deque<std::shared_ptr<Exchange>> posted_;
  std::condition_variable changed_;
  const std::shared_ptr<int> captured_ = std::make_shared<int>(); // a copy is in each captured collective
  Channel channel_;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_COMMUNICATOR_H

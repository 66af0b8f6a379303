//===- stream_communicator.cpp - Collectives over streams of our own ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/stream_communicator.h"

#include "collectives/all_reduce_algorithms.h"
#include "collectives/network_communicator.h"
#include "collectives/reduce_sum.h"
#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <poll.h>

namespace drt {
namespace {

// How often who waits looks whether it is broken off, in milliseconds.
constexpr int lookMs = 100;

/// Bytes that go one way over a stream.
struct Transfer {
  Stream *stream;
  char *data;
  int64_t bytes;
  bool sends;

  /// Whether it got on.
  bool advance() {
    bool any = false;
    while (bytes > 0) {
      const int64_t done = sends ? stream->write(data, bytes) : stream->read(data, bytes);
      if (done == 0)
        return any;
      any = true;
      data += done;
      bytes -= done;
    }
    return any;
  }
};

/// Moves all of them, in any order. `stopped` ends it early, with an error.
void move(std::vector<Transfer> transfers, const std::atomic<bool> &stopped) {
  std::vector<pollfd> waits;
  for (;;) {
    bool any = false;
    for (Transfer &transfer : transfers)
      any |= transfer.advance();
    std::erase_if(transfers, [](const Transfer &transfer) { return transfer.bytes == 0; });
    if (transfers.empty())
      return;
    if (stopped.load())
      throw Error("broken off");
    if (any)
      continue;
    waits.clear();
    for (const Transfer &transfer : transfers)
      waits.push_back({transfer.stream->descriptor(), static_cast<short>(transfer.sends ? POLLOUT : POLLIN), 0});
    poll(waits.data(), waits.size(), lookMs);
  }
}

class StreamChannel final : public Channel {
public:
  using Guard = std::function<void(const std::function<void()> &)>;
  StreamChannel(std::shared_ptr<Stream> stream, const std::atomic<bool> &stopped, Guard guard)
      : stream_(std::move(stream)), stopped_(stopped), guard_(std::move(guard)) {}

  void send(const std::vector<Piece> &pieces) override { moveAll(pieces, true); }
  void receive(const std::vector<Piece> &pieces) override { moveAll(pieces, false); }
  bool reads_in_place() const override { return false; }

private:
  void moveAll(const std::vector<Piece> &pieces, bool sends) {
    guard_([&] {
      for (const Piece &piece : pieces)
        move({{stream_.get(), piece.data, piece.bytes, sends}}, stopped_);
    });
  }

  const std::shared_ptr<Stream> stream_;
  const std::atomic<bool> &stopped_;
  const Guard guard_;
};

class StreamCommunicator final : public NetworkCommunicator, private Swap {
public:
  StreamCommunicator(StreamOptions options, Progress &progress)
      : NetworkCommunicator(progress, std::move(options.explain)), rank_(options.rank), size_(options.size),
        mesh_(std::move(options.mesh)), streams_(static_cast<size_t>(size_)) {
    std::vector<int> peers;
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        peers.push_back(peer);
    guarded([&] {
      std::vector<std::shared_ptr<Stream>> streams = connect(peers);
      for (size_t i = 0; i < peers.size(); ++i)
        streams_[static_cast<size_t>(peers[i])] = streams[i];
    });
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts) override {
    std::vector<int> peers;
    for (int task = 0; task < size_; ++task)
      if (task != root && (rank_ == root || rank_ == task))
        peers.insert(peers.end(), static_cast<size_t>(counts[static_cast<size_t>(task)]), rank_ == root ? task : root);
    std::vector<std::unique_ptr<Channel>> channels;
    const StreamChannel::Guard guard = [this](const std::function<void()> &transfer) { translated<Error>(transfer); };
    guarded([&] {
      for (std::shared_ptr<Stream> &stream : connect(peers))
        channels.push_back(std::make_unique<StreamChannel>(std::move(stream), stopped_, guard));
    });
    return channels;
  }

  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override {
    const SumType type = sum_type(dtype);
    if (count == 0)
      return;
    algorithm = chooseAllReduce(algorithm, count * static_cast<int64_t>(type.element_size), size_);
    guarded([&] { allReduce(algorithm, static_cast<char *>(data), count, type, rank_, size_, *this, scratch_); });
  }

  /// Along a binomial tree.
  void broadcast(void *data, int64_t bytes, int root) override {
    if (bytes == 0)
      return;
    guarded([&] {
      const int place = (rank_ - root + size_) % size_;
      int distance = 1;
      while (distance < size_ && !(place & distance))
        distance *= 2;
      if (place != 0)
        move({receiving((place - distance + root) % size_, data, bytes)}, stopped_);
      std::vector<Transfer> sends;
      for (distance /= 2; distance >= 1; distance /= 2)
        if (place + distance < size_)
          sends.push_back(sending((place + distance + root) % size_, data, bytes));
      move(std::move(sends), stopped_);
    });
  }

  void barrier() override {
    int32_t nothing = 0;
    guarded([&] {
      allReduce(DRT_ALL_REDUCE_DOUBLING, reinterpret_cast<char *>(&nothing), 1, sum_type(DRT_I32), rank_, size_, *this,
                scratch_);
    });
  }

private:
  void exchange(const std::vector<Piece> &to, const std::vector<Piece> &from) override {
    guarded([&] {
      std::vector<Transfer> transfers;
      for (int peer = 0; peer < size_; ++peer)
        if (const auto at = static_cast<size_t>(peer); peer != rank_)
          transfers.insert(transfers.end(),
                           {sending(peer, to[at].data, to[at].bytes), receiving(peer, from[at].data, from[at].bytes)});
      move(std::move(transfers), stopped_);
    });
  }

  /// Of an all-reduce.
  void operator()(int to, const void *sent, int64_t sentBytes, int from, void *received,
                  int64_t receivedBytes) override {
    std::vector<Transfer> transfers;
    if (sentBytes > 0)
      transfers.push_back(sending(to, sent, sentBytes));
    if (receivedBytes > 0)
      transfers.push_back(receiving(from, received, receivedBytes));
    move(std::move(transfers), stopped_);
  }

  std::vector<std::shared_ptr<Stream>> connect(const std::vector<int> &peers) {
    std::vector<std::shared_ptr<Stream>> streams = mesh_->connect(peers);
    std::lock_guard lock(mutex_);
    open_.insert(open_.end(), streams.begin(), streams.end());
    return streams;
  }

  Transfer sending(int peer, const void *data, int64_t bytes) {
    return {streams_[static_cast<size_t>(peer)].get(), const_cast<char *>(static_cast<const char *>(data)), bytes,
            true};
  }
  Transfer receiving(int peer, void *data, int64_t bytes) {
    return {streams_[static_cast<size_t>(peer)].get(), static_cast<char *>(data), bytes, false};
  }

  template <class Collective> void guarded(Collective &&collective) { NetworkCommunicator::guarded<Error>(collective); }

  void break_connections() noexcept override {
    try {
      std::lock_guard lock(mutex_);
      stopped_.store(true);
      for (const std::weak_ptr<Stream> &each : open_)
        if (const std::shared_ptr<Stream> stream = each.lock())
          stream->shut();
    } catch (const std::exception &) {
    }
  }

  const int rank_, size_;
  const std::unique_ptr<StreamMesh> mesh_;
  std::vector<std::shared_ptr<Stream>> streams_; // of each task; null for this one
  std::vector<char> scratch_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_; // guards open_
  std::vector<std::weak_ptr<Stream>> open_;
};

} // namespace

std::unique_ptr<Communicator> make_stream_communicator(StreamOptions options, Progress &progress) {
  return std::make_unique<StreamCommunicator>(std::move(options), progress);
}

} // namespace drt

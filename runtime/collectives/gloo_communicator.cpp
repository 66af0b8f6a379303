//===- gloo_communicator.cpp - Collectives over TCP by gloo -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/gloo_communicator.h"

#include "collectives/all_reduce_algorithms.h"
#include "collectives/network_communicator.h"
#include "collectives/reduce_sum.h"
#include "core/batch_scheduling.h"
#include "core/error.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <iterator>
#include <sys/random.h>
#include <utility>
#include <vector>

namespace drt {

namespace {

// gloo's collectives use prefixes counted from 0 (gloo/types.h).
constexpr uint8_t doubling_slot_prefix = 0x40;
constexpr uint8_t abort_slot_prefix = 0x41;
constexpr uint8_t verify_slot_prefix = 0x42;

constexpr uint8_t channel_slot_prefix = 0x43;
constexpr uint8_t exchange_slot_prefix = 0x44;

constexpr size_t challenge_bytes = 32;

// A collective waits for its slowest task however long that computes. That a task
// is gone is the control connection's to notice, which then aborts.
constexpr std::chrono::hours no_timeout(24 * 365);

class StoreAdapter final : public gloo::rendezvous::Store {
public:
  StoreAdapter(KeyValueStore &to, const std::string &group) : store(to), prefix("gloo/" + group + "/") {}
  void set(const std::string &key, const std::vector<char> &data) override {
    store.set(prefix + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string &key) override {
    std::string value = store.get(prefix + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string> &keys) override {
    for (const std::string &key : keys)
      store.get(prefix + key);
  }

private:
  KeyValueStore &store;
  const std::string prefix;
};

/// A message is parts, whose lengths go before them, so that it can be received in other pieces than it was sent in.
/// Large pieces are parts of their own, sent from where they are and, into a piece that is as large, received where
/// they belong; small ones are joined.
class GlooChannel final : public Channel {
public:
  using Context = std::shared_ptr<gloo::rendezvous::Context>;
  /// `guard` runs what may throw gloo's exceptions.
  using Guard = std::function<void(const std::function<void()> &)>;

  GlooChannel(Context context, int peer, uint32_t number, Guard guard)
      : context(std::move(context)), peer(peer), slot(gloo::Slot::build(channel_slot_prefix, number)),
        guard(std::move(guard)) {}

  void send(const std::vector<Piece> &pieces) override {
    const std::vector<Piece> parts = join(pieces);
    if (parts.empty())
      return; // which nobody receives
    Head head = {static_cast<int64_t>(parts.size()), {}};
    std::vector<int64_t> more;
    for (size_t i = 0; i < parts.size(); ++i)
      (i < std::size(head.lengths) ? head.lengths[i] : more.emplace_back()) = parts[i].bytes;
    guard([&] {
      Buffers going;
      const auto send = [&](void *data, size_t bytes) {
        going.push_back(context->createUnboundBuffer(data, bytes));
        going.back()->send(peer, slot);
      };
      send(&head, sizeof head);
      if (!more.empty())
        send(more.data(), more.size() * sizeof(int64_t));
      for (const Piece &part : parts)
        send(part.data, static_cast<size_t>(part.bytes));
      for (const auto &buffer : going)
        buffer->waitSend(no_timeout);
    });
  }

  void receive(const std::vector<Piece> &pieces) override {
    guard([&] {
      Buffers coming;
      for (const Piece &piece : pieces)
        for (int64_t at = 0; at < piece.bytes;)
          at += receive(piece.data + at, piece.bytes - at, coming);
      for (const auto &buffer : coming)
        buffer->waitRecv(no_timeout);
    });
  }

  bool reads_in_place() const override { return false; }

private:
  using Buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;

  struct Head {
    int64_t parts;
    int64_t lengths[7]; // of the first of them; those of others follow
  };
  static constexpr int64_t large = 64 << 10;
  static constexpr int64_t most_parts = 1 << 24; // more are no message

  std::vector<Piece> join(const std::vector<Piece> &pieces) {
    int64_t small = 0;
    for (const Piece &piece : pieces)
      small += piece.bytes < large ? piece.bytes : 0;
    joined.resize(static_cast<size_t>(small));
    std::vector<Piece> parts;
    char *end = joined.data();
    bool open = false; // the last part takes more
    for (const Piece &piece : pieces) {
      if (piece.bytes >= large) {
        parts.push_back(piece);
        open = false;
      } else if (piece.bytes > 0) {
        if (!std::exchange(open, true))
          parts.push_back({end, 0});
        end = std::copy_n(piece.data, piece.bytes, end);
        parts.back().bytes += piece.bytes;
      }
    }
    return parts;
  }

  /// Some of the next bytes, or a receive for them. Returns how many.
  int64_t receive(char *data, int64_t room, Buffers &coming) {
    if (taken == static_cast<int64_t>(received.size()) && lengths.empty())
      receiveLengths();
    if (taken == static_cast<int64_t>(received.size())) {
      const int64_t bytes = lengths.front();
      lengths.pop_front();
      if (bytes <= room) {
        coming.push_back(begin(data, static_cast<size_t>(bytes)));
        return bytes;
      }
      taken = 0;
      received.resize(static_cast<size_t>(bytes));
      begin(received.data(), received.size())->waitRecv(no_timeout);
    }
    const int64_t bytes = std::min(room, static_cast<int64_t>(received.size()) - taken);
    std::memcpy(data, received.data() + taken, static_cast<size_t>(bytes));
    taken += bytes;
    return bytes;
  }

  void receiveLengths() {
    Head head;
    begin(&head, sizeof head)->waitRecv(no_timeout);
    if (head.parts < 1 || head.parts > most_parts)
      throw Error("a message of " + std::to_string(head.parts) + " parts came from another task", 70);
    const int64_t first = std::min<int64_t>(head.parts, std::size(head.lengths));
    lengths.assign(head.lengths, head.lengths + first);
    if (head.parts > first) {
      std::vector<int64_t> more(static_cast<size_t>(head.parts - first));
      begin(more.data(), more.size() * sizeof(int64_t))->waitRecv(no_timeout);
      lengths.insert(lengths.end(), more.begin(), more.end());
    }
    if (*std::min_element(lengths.begin(), lengths.end()) < 1)
      throw Error("a message with a part of no bytes came from another task", 70);
  }

  std::unique_ptr<gloo::transport::UnboundBuffer> begin(void *data, size_t bytes) {
    auto buffer = context->createUnboundBuffer(data, bytes);
    buffer->recv(peer, slot);
    return buffer;
  }

  const Context context;
  const int peer;
  const gloo::Slot slot;
  const Guard guard;
  std::vector<char> joined, received;
  std::deque<int64_t> lengths; // of parts that have not been received
  int64_t taken = 0;           // of what was received
};

/// Messages of one collective, which has a slot of its own.
class GlooSwap final : public Swap {
public:
  GlooSwap(gloo::rendezvous::Context &context, gloo::Slot slot) : context(context), slot(slot) {}

  void operator()(int to, const void *sent, int64_t sent_bytes, int from, void *received,
                  int64_t received_bytes) override {
    std::unique_ptr<gloo::transport::UnboundBuffer> in, out;
    if (received_bytes > 0) {
      in = context.createUnboundBuffer(received, static_cast<size_t>(received_bytes));
      in->recv(from, slot);
    }
    if (sent_bytes > 0) {
      // gloo takes no const pointer; it only reads what it sends.
      out = context.createUnboundBuffer(const_cast<void *>(sent), static_cast<size_t>(sent_bytes));
      out->send(to, slot);
    }
    if (in)
      in->waitRecv(no_timeout);
    if (out)
      out->waitSend(no_timeout); // before what is being sent changes
  }

private:
  gloo::rendezvous::Context &context;
  const gloo::Slot slot;
};

class GlooCommunicator final : public NetworkCommunicator {
public:
  GlooCommunicator(const GlooOptions &options, KeyValueStore &store, Progress &where)
      : NetworkCommunicator(where, options.explain), context(connect(options, store)) {
    context->setTimeout(no_timeout);
  }

  int rank() const override { return context->rank; }
  int size() const override { return context->size; }

  std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts) override {
    const GlooChannel::Guard guard = [this](const std::function<void()> &transfer) {
      translated<gloo::Exception>(transfer);
    };
    std::vector<std::unique_ptr<Channel>> channels;
    for (int task = 0; task < size(); ++task)
      if (task != root && (rank() == root || rank() == task))
        for (int i = 0; i < counts[static_cast<size_t>(task)]; ++i)
          channels.push_back(std::make_unique<GlooChannel>(context, rank() == root ? task : root,
                                                           first_channel + static_cast<uint32_t>(i), guard));
    first_channel += static_cast<uint32_t>(*std::max_element(counts.begin(), counts.end()));
    return channels;
  }

  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override {
    SumType type = sum_type(dtype);
    if (count == 0)
      return;
    algorithm = chooseAllReduce(algorithm, count * static_cast<int64_t>(type.element_size), size());
    guarded([&] {
      if (algorithm == DRT_ALL_REDUCE_RING)
        return all_reduce_ring(data, static_cast<size_t>(count), type);
      GlooSwap swap(*context, gloo::Slot::build(doubling_slot_prefix, next_tag()));
      allReduce(algorithm, static_cast<char *>(data), count, type, rank(), size(), swap, scratch);
    });
  }

  void broadcast(void *data, int64_t bytes, int root) override {
    if (bytes == 0)
      return;
    guarded([&] {
      gloo::BroadcastOptions options(context);
      options.setOutput(static_cast<uint8_t *>(data), static_cast<size_t>(bytes));
      options.setRoot(root);
      options.setTag(next_tag());
      gloo::broadcast(options);
    });
  }

  void barrier() override {
    guarded([&] {
      gloo::BarrierOptions options(context);
      options.setTag(next_tag());
      options.setTimeout(no_timeout);
      gloo::barrier(options);
    });
  }

private:
  using Context = gloo::rendezvous::Context;

  /// gloo listens until each task has connected, and takes whoever comes first. So tasks ask each other for a proof
  /// over the new connections, and where one is a stranger's, or a stranger kept a task out, all connect once more.
  static std::shared_ptr<Context> connect(const GlooOptions &options, KeyValueStore &store) {
    constexpr int most_attempts = 5;
    std::string failure;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      const std::string group = options.group + "/" + std::to_string(attempt);
      std::shared_ptr<Context> mesh = try_to_connect(options, store, group, failure);
      const auto key = [&](int rank) { return "connected/" + group + "/" + std::to_string(rank); };
      store.set(key(options.rank), failure);
      for (int rank = 0; rank < options.size; ++rank)
        if (const std::string theirs = store.get(key(rank)); failure.empty())
          failure = theirs;
      if (failure.empty())
        return mesh;
    }
    throw Error(options.explain ? options.explain(failure) : failure);
  }

  static std::shared_ptr<Context> try_to_connect(const GlooOptions &options, KeyValueStore &store,
                                                 const std::string &group, std::string &failure) {
    failure.clear();
    const std::chrono::milliseconds timeout(static_cast<int64_t>(options.connect_timeout * 1000));
    auto mesh = std::make_shared<Context>(options.rank, options.size);
    try {
      auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.address.c_str()));
      mesh->setTimeout(timeout);
      StoreAdapter adapter(store, group);
      mesh->connectFullMesh(adapter, device);
      if (options.prove)
        verify(*mesh, options, group, timeout);
    } catch (const gloo::Exception &e) {
      failure = e.what();
      return nullptr;
    }
    return mesh;
  }

  /// Every task to every other: a challenge, then the proof that the other's asks for.
  static void verify(Context &mesh, const GlooOptions &options, const std::string &group,
                     std::chrono::milliseconds timeout) {
    const size_t size = static_cast<size_t>(options.size);
    std::vector<std::string> challenges(size), theirs(size, std::string(challenge_bytes, 0));
    for (std::string &challenge : challenges)
      challenge = random_bytes(challenge_bytes);
    swap(mesh, gloo::Slot::build(verify_slot_prefix, 0), challenges, theirs, timeout);
    const auto statement = [&](int from, int to, const std::string &challenge) -> std::vector<std::string> {
      return {"connection", group, std::to_string(from), std::to_string(to), challenge};
    };
    std::vector<std::string> proofs(size), answers(size);
    for (int peer = 0; peer < options.size; ++peer) {
      const size_t at = static_cast<size_t>(peer);
      proofs[at] = options.prove(statement(options.rank, peer, theirs[at]));
      answers[at].resize(proofs[at].size());
    }
    swap(mesh, gloo::Slot::build(verify_slot_prefix, 1), proofs, answers, timeout);
    for (int peer = 0; peer < options.size; ++peer)
      if (peer != options.rank &&
          answers[static_cast<size_t>(peer)] !=
              options.prove(statement(peer, options.rank, challenges[static_cast<size_t>(peer)])))
        throw gloo::IoException("a stranger took the connection of task " + std::to_string(peer));
  }

  /// sent[p] to each peer, received[p], of a size that is known, from each.
  static void swap(Context &mesh, gloo::Slot slot, std::vector<std::string> &sent, std::vector<std::string> &received,
                   std::chrono::milliseconds timeout) {
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sending(sent.size()), receiving(sent.size());
    for (int peer = 0; peer < mesh.size; ++peer) {
      if (peer == mesh.rank)
        continue;
      const size_t at = static_cast<size_t>(peer);
      receiving[at] = mesh.createUnboundBuffer(received[at].data(), received[at].size());
      receiving[at]->recv(peer, slot);
      sending[at] = mesh.createUnboundBuffer(sent[at].data(), sent[at].size());
      sending[at]->send(peer, slot);
    }
    for (size_t at = 0; at < sent.size(); ++at)
      if (sending[at]) {
        receiving[at]->waitRecv(timeout);
        sending[at]->waitSend(timeout);
      }
  }

  static std::string random_bytes(size_t count) {
    std::string bytes(count, '\0');
    if (getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count))
      throw Error("the system gives no random bytes");
    return bytes;
  }

  template <class Collective> void guarded(Collective &&collective) {
    NetworkCommunicator::guarded<gloo::Exception>(collective);
  }

  uint32_t next_tag() { return tag++; }

  /// gloo sends what its peer has said to expect, and says so in the order of calls: behind a large message, so late
  /// that the connection carries one way after the other, as in its own all-to-all. So all receive first.
  void exchange(const std::vector<Piece> &to, const std::vector<Piece> &from) override {
    guarded([&] {
      const gloo::Slot slot = gloo::Slot::build(exchange_slot_prefix, next_tag());
      std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> in, out;
      for (int i = 1; i < size(); ++i) {
        const int peer = (rank() + size() - i) % size();
        if (const Piece &piece = from[static_cast<size_t>(peer)]; piece.bytes > 0) {
          in.push_back(context->createUnboundBuffer(piece.data, static_cast<size_t>(piece.bytes)));
          in.back()->recv(peer, slot);
        }
      }
      for (int i = 1; i < size(); ++i) {
        const int peer = (rank() + i) % size();
        if (const Piece &piece = to[static_cast<size_t>(peer)]; piece.bytes > 0) {
          out.push_back(context->createUnboundBuffer(piece.data, static_cast<size_t>(piece.bytes)));
          out.back()->send(peer, slot);
        }
      }
      for (const auto &buffer : in)
        buffer->waitRecv(no_timeout);
      for (const auto &buffer : out)
        buffer->waitSend(no_timeout);
    });
  }

  /// gloo has no call that ends a collective which waits, but a receive that times
  /// out fails every connection of its context, and with them whatever waits there.
  void break_connections() noexcept override {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank())
        continue;
      try {
        char nothing = 0;
        auto buffer = context->createUnboundBuffer(&nothing, sizeof nothing);
        buffer->recv(peer, gloo::Slot::build(abort_slot_prefix, 0));
        buffer->waitRecv(std::chrono::milliseconds(1));
      } catch (const std::exception &) {
        // Either this was the timeout, or that connection had failed before.
      }
    }
  }

  /// Reduce-scatter and all-gather around a ring: each task sends 2 (N-1)/N of the
  /// bytes, in segments that overlap with the sums (Patarasuk and Yuan 2009).
  void all_reduce_ring(void *data, size_t count, SumType type) {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    if (type.element_size == 4)
      options.setOutput(static_cast<uint32_t *>(data), count);
    else
      options.setOutput(static_cast<uint64_t *>(data), count);
    options.setReduceFunction(type.sum);
    options.setTag(next_tag());
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context;
  std::vector<char> scratch;
  uint32_t tag = 0, first_channel = 0;
};

} // namespace

std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions &options, KeyValueStore &store,
                                                     Progress &progress) {
  // gloo writes without MSG_NOSIGNAL; a closed connection is an error here, not a signal.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR)
    throw Error("cannot ignore SIGPIPE");
  try {
    // Of gloo's thread. It is woken while another thread of the task sends, which holds a connection's lock meanwhile.
    // Instead of waiting for the lock gloo's tries again and again; had it interrupted the other one, on a core of
    // both, that would be for a whole slice, some milliseconds a message.
    const BatchScheduling scheduling;
    return std::make_unique<GlooCommunicator>(options, store, progress);
  } catch (const gloo::Exception &e) {
    throw Error(options.explain ? options.explain(e.what()) : std::string(e.what()));
  }
}

} // namespace drt

//===- tls_mesh.cpp - Encrypted streams between tasks ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/tls_mesh.h"

#include "core/error.h"
#include "launch/secret.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

namespace drt {
namespace {

constexpr size_t tokenBytes = 32;

/// What the connecting task says first: who it is, which of its connections this is, and the accepting task's token.
struct Introduction {
  int32_t rank, number;
  char token[tokenBytes];
};
constexpr char accepted = 'A';

// Who has connected, and is not known yet.
constexpr size_t mostGuests = 64;

class TlsMesh final : public StreamMesh {
public:
  TlsMesh(TlsMeshOptions options, KeyValueStore &store)
      : options_(std::move(options)), store_(store), listening_(listen_at({options_.address, 0})),
        token_(make_nonce()) {
    store_.set(key(options_.rank), std::to_string(bound_port(listening_)) + " " + options_.address + " " + token_);
  }

  // Of two tasks the lower one accepts, and the connections of each two are counted in the order in which both ask for
  // them; so every task waits for lower ones first, and the lowest for nobody.
  std::vector<std::shared_ptr<Stream>> connect(const std::vector<int> &peers) override {
    const Clock::time_point deadline = Clock::now() + seconds(options_.timeout);
    std::vector<std::shared_ptr<Stream>> streams(peers.size());
    std::map<std::pair<int, int>, size_t> awaited; // (rank, number)
    for (size_t i = 0; i < peers.size(); ++i) {
      const int number = made_[peers[i]]++;
      if (peers[i] < options_.rank)
        streams[i] = connectTo(peers[i], number, deadline);
      else
        awaited[{peers[i], number}] = i;
    }
    while (!awaited.empty()) {
      if (Clock::now() > deadline)
        throw Error("task " + std::to_string(awaited.begin()->first.first) + " did not connect within " +
                    format_seconds(options_.timeout) + " s");
      accept(awaited, streams);
    }
    return streams;
  }

private:
  struct Guest {
    std::shared_ptr<TlsStream> stream;
    Clock::time_point deadline;
    bool shaken = false;
    size_t read = 0;
    Introduction said;
  };

  std::string key(int rank) const { return "tls/" + options_.group + "/" + std::to_string(rank); }

  static void noDelay(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  static void await(const TlsStream &stream, bool writes, Clock::time_point deadline) {
    if (Clock::now() > deadline)
      throw Error("it does not answer");
    pollfd event{stream.descriptor(), static_cast<short>(writes ? POLLOUT : POLLIN), 0};
    poll(&event, 1, 100);
  }

  std::shared_ptr<Stream> connectTo(int peer, int number, Clock::time_point deadline) {
    const std::string entry = store_.get(key(peer));
    const size_t space = entry.find(' '), end = entry.find(' ', space + 1);
    if (end == entry.npos || entry.size() - end - 1 != tokenBytes)
      throw Error("task " + std::to_string(peer) + " does not say where it listens", 70);
    const HostPort where = {entry.substr(space + 1, end - space - 1), std::atoi(entry.c_str())};
    std::string error;
    Socket socket = connect_to(where, deadline, error);
    if (!socket)
      throw Error("task " + std::to_string(peer) + " cannot be reached at " + where.host + ":" +
                  std::to_string(where.port) + ": " + error);
    try {
      std::shared_ptr<TlsStream> stream = options_.tls->open(socket.release(), Tls::Side::Connected);
      while (!stream->handshake())
        await(*stream, stream->wantsWrite(), deadline);
      Introduction said = {options_.rank, number, {}};
      std::memcpy(said.token, entry.data() + end + 1, tokenBytes);
      const char *bytes = reinterpret_cast<const char *>(&said);
      for (size_t sent = 0; sent < sizeof said;) {
        const int64_t n = stream->write(bytes + sent, static_cast<int64_t>(sizeof said - sent));
        sent += static_cast<size_t>(n);
        if (n == 0)
          await(*stream, true, deadline);
      }
      // Only then is it known that this task's certificate has been believed, too.
      char answer = 0;
      while (stream->read(&answer, 1) == 0)
        await(*stream, false, deadline);
      if (answer != accepted)
        throw Error("it is no task of this run");
      return stream;
    } catch (const Error &failure) {
      throw Error("the connection to task " + std::to_string(peer) + " at " + where.host + ":" +
                  std::to_string(where.port) + ": " + failure.what());
    }
  }

  /// One turn: whoever waits, each a step.
  void accept(std::map<std::pair<int, int>, size_t> &awaited, std::vector<std::shared_ptr<Stream>> &streams) {
    std::vector<pollfd> events = {{listening_.fd(), POLLIN, 0}};
    for (const Guest &guest : guests_)
      events.push_back(
          {guest.stream->descriptor(), static_cast<short>(guest.stream->wantsWrite() ? POLLOUT : POLLIN), 0});
    poll(events.data(), events.size(), 100);
    for (Guest &guest : guests_)
      if (!advance(guest, awaited, streams))
        guest.stream.reset();
    std::erase_if(guests_, [](const Guest &guest) { return !guest.stream; });
    if (!(events[0].revents & POLLIN))
      return;
    Socket socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket)
      return;
    noDelay(socket.fd());
    if (guests_.size() == mostGuests)
      guests_.erase(guests_.begin());
    constexpr double patience = 5;
    guests_.push_back({options_.tls->open(socket.release(), Tls::Side::Accepted), Clock::now() + seconds(patience)});
  }

  /// False: it is no task, or is one and has its stream.
  bool advance(Guest &guest, std::map<std::pair<int, int>, size_t> &awaited,
               std::vector<std::shared_ptr<Stream>> &streams) {
    if (Clock::now() > guest.deadline)
      return false;
    try {
      if (!guest.shaken && !(guest.shaken = guest.stream->handshake()))
        return true;
      while (guest.read < sizeof guest.said) {
        const int64_t n = guest.stream->read(reinterpret_cast<char *>(&guest.said) + guest.read,
                                             static_cast<int64_t>(sizeof guest.said - guest.read));
        if (n == 0)
          return true;
        guest.read += static_cast<size_t>(n);
      }
      const auto found = awaited.find({guest.said.rank, guest.said.number});
      if (sodium_memcmp(guest.said.token, token_.data(), tokenBytes) != 0)
        return false;
      if (found == awaited.end()) {
        guest.deadline = Clock::time_point::max(); // a task that is ahead: of the next call
        return true;
      }
      if (guest.stream->write(&accepted, 1) != 1)
        return false;
      streams[found->second] = guest.stream;
      awaited.erase(found);
    } catch (const Error &) {
      // A stranger, or a task that says itself what is wrong.
    }
    return false;
  }

  const TlsMeshOptions options_;
  KeyValueStore &store_;
  const Socket listening_;
  const std::string token_;
  std::map<int, int> made_; // connections with each task so far
  std::vector<Guest> guests_;
};

} // namespace

std::unique_ptr<StreamMesh> make_tls_mesh(TlsMeshOptions options, KeyValueStore &store) {
  return std::make_unique<TlsMesh>(std::move(options), store);
}

} // namespace drt

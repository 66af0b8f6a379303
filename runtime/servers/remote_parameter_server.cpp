//===- remote_parameter_server.cpp - A server in another process ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "servers/remote_parameter_server.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/timeline.h"

#include <string>

namespace drt {
namespace {

// A push has no reply: what comes after it is answered when it is done, and says so where the server has stopped. A
// token is taken with what the replica does first when it has it.
enum class Wish : int32_t { Pull, TokenAndPull, Push, Update, Leave };

struct Request {
  Wish wish;
  int32_t replica;
  int64_t version; // of Push
};
struct Reply {
  int64_t granted; // 0: stopped
  int64_t number;  // of Pull the version, of Update how many reports follow
};

template <class T> Piece pieceOf(const T &value) {
  return {const_cast<char *>(reinterpret_cast<const char *>(&value)), sizeof value};
}
Piece pieceOf(const void *data, int64_t bytes) { return {static_cast<char *>(const_cast<void *>(data)), bytes}; }

int64_t bytesOf(const drt_gradient &gradient) { return gradient.count * dtypeSize(gradient.dtype); }

Reply ask(Channel &channel, const std::vector<Piece> &message) {
  Reply reply;
  channel.send(message);
  channel.receive({pieceOf(reply)});
  return reply;
}

/// One end of a channel, answering.
class Answers {
public:
  Answers(LocalParameterServer &server, Channel &channel, const ServedSizes &sizes, int32_t listener)
      : server_(server), channel_(channel), sizes_(sizes), listener_(listener) {}

  /// False: the other end leaves.
  bool next() {
    Request request;
    channel_.receive({pieceOf(request)});
    if (request.replica < 0 || request.replica >= server_.config().replicas)
      throw Error("a task asks its server for replica " + std::to_string(request.replica) + ", and there are " +
                      std::to_string(server_.config().replicas),
                  70);
    switch (request.wish) {
    case Wish::TokenAndPull:
      if (server_.takeToken(request.replica))
        pull(request);
      else
        reply({0, 0});
      return true;
    case Wish::Pull:
      pull(request);
      return true;
    case Wish::Push:
      push(request);
      return true;
    case Wish::Update:
      tell();
      return true;
    case Wish::Leave:
      return false;
    }
    throw Error("a task asks its server for something unknown", 70);
  }

private:
  void reply(Reply said) { channel_.send({pieceOf(said)}); }

  void pull(const Request &request) {
    const std::vector<LocalServerConfig::Variable> &variables = server_.config().variables;
    const auto send = [&](int64_t version, auto dataOf) {
      const Reply said = {1, version};
      std::vector<Piece> values = {pieceOf(said)};
      for (size_t i = 0; i < variables.size(); ++i)
        values.push_back(pieceOf(dataOf(i), variables[i].bytes));
      channel_.send(values);
    };
    if (channel_.reads_in_place()) {
      if (!server_.readVariables([&](int64_t version) { send(version, [&](size_t i) { return variables[i].data; }); }))
        reply({0, 0});
      return;
    }
    // A network may be slow: no update shall wait for it.
    if (const std::shared_ptr<const LocalParameterServer::Snapshot> values = server_.snapshot())
      send(values->version, [&](size_t i) { return values->values[i].data(); });
    else
      reply({0, 0});
  }

  void push(const Request &request) {
    const drt_servers &servers = *sizes_.servers;
    Memory gradients = server_.newGradients();
    std::vector<char> report(static_cast<size_t>(sizes_.reportBytes));
    std::vector<Piece> pieces;
    for (int32_t i = 0; i < servers.num_gradients; ++i)
      pieces.push_back({server_.gradient(gradients, i), bytesOf(servers.gradients[i])});
    pieces.push_back({report.data(), sizes_.reportBytes});
    channel_.receive(pieces);
    server_.push(request.replica, request.version, std::move(gradients), report.data());
  }

  void tell() {
    std::vector<std::vector<char>> reports;
    const bool there = server_.waitForUpdate(listener_, reports);
    const Reply said = {there, static_cast<int64_t>(reports.size())};
    std::vector<Piece> pieces = {pieceOf(said)};
    for (std::vector<char> &report : reports)
      pieces.push_back({report.data(), static_cast<int64_t>(report.size())});
    channel_.send(pieces);
  }

  LocalParameterServer &server_;
  Channel &channel_;
  const ServedSizes &sizes_;
  const int32_t listener_;
};

} // namespace

std::optional<int64_t> RemoteParameterServer::pull(int32_t replica, void *const *values) {
  Channel &channel = channelOf(replica);
  char &wantsToken = wantsToken_[static_cast<size_t>(replica - firstReplica_)];
  const Request request = {wantsToken ? Wish::TokenAndPull : Wish::Pull, replica, 0};
  wantsToken = false;
  const int64_t asked = nowNs();
  const Reply reply = ask(channel, {pieceOf(request)});
  waitedNs_[static_cast<size_t>(replica - firstReplica_)] += nowNs() - asked;
  if (!reply.granted)
    return std::nullopt;
  std::vector<Piece> pieces;
  for (size_t i = 0; i < sizes_.variables.size(); ++i)
    pieces.push_back(pieceOf(values[i], sizes_.variables[i]));
  channel.receive(pieces);
  return reply.number;
}

bool RemoteParameterServer::push(int32_t replica, int64_t version, const void *const *gradients, const void *report) {
  Channel &channel = channelOf(replica);
  const Request request = {Wish::Push, replica, version};
  std::vector<Piece> pieces = {pieceOf(request)};
  for (int32_t i = 0; i < sizes_.servers->num_gradients; ++i)
    pieces.push_back(pieceOf(gradients[i], bytesOf(sizes_.servers->gradients[i])));
  pieces.push_back(pieceOf(report, sizes_.reportBytes));
  channel.send(pieces);
  return true;
}

bool RemoteParameterServer::takeToken(int32_t replica) {
  // Asynchronous updates give none.
  wantsToken_[static_cast<size_t>(replica - firstReplica_)] = sizes_.servers->policy != DRT_SERVE_ASYNC;
  return true;
}

bool RemoteParameterServer::waitForUpdate(std::vector<std::vector<char>> &reports) {
  Channel &channel = *channels_.back();
  const Request request = {Wish::Update, 0, 0};
  const Reply reply = ask(channel, {pieceOf(request)});
  if (!reply.granted)
    return false;
  reports.assign(static_cast<size_t>(reply.number), std::vector<char>(static_cast<size_t>(sizes_.reportBytes)));
  if (sizes_.updateReportBytes > 0 && !reports.empty())
    reports.back().resize(static_cast<size_t>(sizes_.updateReportBytes));
  std::vector<Piece> pieces;
  for (std::vector<char> &report : reports)
    pieces.push_back({report.data(), static_cast<int64_t>(report.size())});
  channel.receive(pieces);
  return true;
}

void RemoteParameterServer::leave(int32_t replica) {
  const Request request = {Wish::Leave, replica, 0};
  channelOf(replica).send({pieceOf(request)});
}

void RemoteParameterServer::leaveAsTrainer() {
  const Request request = {Wish::Leave, 0, 0};
  channels_.back()->send({pieceOf(request)});
}

void answer(LocalParameterServer &server, Channel &channel, const ServedSizes &sizes, int32_t listener) {
  Answers answers(server, channel, sizes, listener);
  while (answers.next()) {
  }
}

} // namespace drt

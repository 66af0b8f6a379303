//===- remote_parameter_server.cpp - A server in another process ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "servers/remote_parameter_server.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/table_rows.h"
#include "core/timeline.h"

#include <string>

namespace drt {
namespace {

// Of a pull the rows that are wanted of each table follow: how many, and which. A push has no reply: what comes after
// it is answered when it is done, and says so where the server has stopped. A token is taken with what the replica does
// first when it has it.
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

int64_t bytesOf(const std::vector<int64_t> &words) { return static_cast<int64_t>(words.size() * sizeof(int64_t)); }
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
      receiveWanted();
      if (server_.takeToken(request.replica))
        pull();
      else
        reply({0, 0});
      return true;
    case Wish::Pull:
      receiveWanted();
      pull();
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

  void receiveWanted() {
    const drt_servers &servers = *sizes_.servers;
    if (servers.num_tables == 0)
      return;
    counts_.resize(static_cast<size_t>(servers.num_tables));
    channel_.receive({pieceOf(counts_.data(), bytesOf(counts_))});
    int64_t all = 0, bytes = 0;
    for (size_t t = 0; t < counts_.size(); ++t) {
      if (counts_[t] < 0 || counts_[t] > servers.tables[t].count)
        throw Error("a task asks its server for " + std::to_string(counts_[t]) + " rows, and a replica needs " +
                        std::to_string(servers.tables[t].count) + " at most",
                    70);
      all += counts_[t];
      bytes += counts_[t] * servers.tables[t].row_bytes;
    }
    wanted_.resize(static_cast<size_t>(all));
    rows_.resize(static_cast<size_t>(bytes));
    if (all > 0)
      channel_.receive({pieceOf(wanted_.data(), bytesOf(wanted_))});
  }

  // While no update runs.
  void takeWanted() {
    const int64_t *wanted = wanted_.data();
    char *out = rows_.data();
    for (size_t t = 0; t < counts_.size(); ++t) {
      const drt_pulled_rows &table = sizes_.servers->tables[t];
      takeRows({DRT_I64, wanted, counts_[t]}, table.rows, table.row_bytes, out,
               [&](int64_t row) { return server_.config().tables[t] + row * table.row_bytes; });
      wanted += counts_[t];
      out += counts_[t] * table.row_bytes;
    }
  }

  void pull() {
    const std::vector<LocalServerConfig::Variable> &variables = server_.config().variables;
    const auto send = [&](int64_t version, auto dataOf) {
      const Reply said = {1, version};
      std::vector<Piece> values = {pieceOf(said)};
      for (size_t i = 0; i < variables.size(); ++i)
        values.push_back(pieceOf(dataOf(i), variables[i].bytes));
      if (!rows_.empty())
        values.push_back(pieceOf(rows_.data(), static_cast<int64_t>(rows_.size())));
      channel_.send(values);
    };
    if (channel_.reads_in_place()) {
      if (!server_.readVariables([&](int64_t version) {
            takeWanted();
            send(version, [&](size_t i) { return variables[i].data; });
          }))
        reply({0, 0});
      return;
    }
    // A network may be slow: no update shall wait for it.
    if (const std::shared_ptr<const LocalParameterServer::Snapshot> values = server_.snapshot([&] { takeWanted(); }))
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
  std::vector<int64_t> counts_, wanted_; // of a pull's rows: how many of each table, and which
  std::vector<char> rows_;
};

} // namespace

void RemoteParameterServer::collect(Asked &asked, void *const *indices) const {
  const drt_servers &servers = *sizes_.servers;
  const auto tables = static_cast<size_t>(servers.num_tables);
  asked.places.resize(tables);
  asked.counts.assign(tables, 0);
  asked.rows.clear();
  int64_t bytes = 0;
  for (size_t t = 0; t < tables; ++t) {
    const drt_pulled_rows &table = servers.tables[t];
    const RowNumbers numbers{table.index_dtype, indices[t], table.count};
    std::unordered_map<int64_t, int64_t> &places = asked.places[t];
    places.clear();
    for (int64_t i = 0; i < numbers.count; ++i)
      if (const int64_t row = numbers[i]; row >= 0 && row < table.rows && places.emplace(row, asked.counts[t]).second) {
        asked.rows.push_back(row);
        ++asked.counts[t];
      }
    bytes += asked.counts[t] * table.row_bytes;
  }
  asked.received.resize(static_cast<size_t>(bytes));
}

std::optional<int64_t> RemoteParameterServer::pull(int32_t replica, void *const *values, void *const *indices) {
  const drt_servers &servers = *sizes_.servers;
  Channel &channel = channelOf(replica);
  char &wantsToken = wantsToken_[static_cast<size_t>(replica - firstReplica_)];
  const Request request = {wantsToken ? Wish::TokenAndPull : Wish::Pull, replica, 0};
  wantsToken = false;
  Asked &asked = asked_[static_cast<size_t>(replica - firstReplica_)];
  collect(asked, indices);
  std::vector<Piece> message = {pieceOf(request)};
  if (servers.num_tables > 0)
    message.push_back(pieceOf(asked.counts.data(), bytesOf(asked.counts)));
  if (!asked.rows.empty())
    message.push_back(pieceOf(asked.rows.data(), bytesOf(asked.rows)));
  const int64_t begin = nowNs();
  const Reply reply = ask(channel, message);
  waitedNs_[static_cast<size_t>(replica - firstReplica_)] += nowNs() - begin;
  if (!reply.granted)
    return std::nullopt;
  std::vector<Piece> pieces;
  for (size_t i = 0; i < sizes_.variables.size(); ++i)
    pieces.push_back(pieceOf(values[i], sizes_.variables[i]));
  if (!asked.received.empty())
    pieces.push_back(pieceOf(asked.received.data(), static_cast<int64_t>(asked.received.size())));
  channel.receive(pieces);
  const char *received = asked.received.data();
  for (size_t t = 0; t < asked.counts.size(); ++t) {
    const drt_pulled_rows &table = servers.tables[t];
    takeRows({table.index_dtype, indices[t], table.count}, table.rows, table.row_bytes,
             values[sizes_.variables.size() + t],
             [&](int64_t row) { return received + asked.places[t].at(row) * table.row_bytes; });
    received += asked.counts[t] * table.row_bytes;
  }
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

//===- remote_parameter_server_test.cpp - A server behind a channel -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "servers/remote_parameter_server.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <array>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace drt;

namespace {

/// Bytes on their way in one direction.
class Pipe {
public:
  void write(const std::vector<Piece> &pieces) {
    {
      const std::lock_guard lock(mutex_);
      for (const Piece &piece : pieces)
        bytes_.append(piece.data, static_cast<size_t>(piece.bytes));
    }
    written_.notify_all();
  }
  void read(const std::vector<Piece> &pieces) {
    std::unique_lock lock(mutex_);
    for (const Piece &piece : pieces) {
      const auto bytes = static_cast<size_t>(piece.bytes);
      written_.wait(lock, [&] { return bytes_.size() >= bytes; });
      if (bytes > 0)
        std::memcpy(piece.data, bytes_.data(), bytes);
      bytes_.erase(0, bytes);
    }
  }

private:
  std::mutex mutex_;
  std::condition_variable written_;
  std::string bytes_;
};

class End final : public Channel {
public:
  End(Pipe &out, Pipe &in, bool inPlace) : out_(out), in_(in), inPlace_(inPlace) {}
  void send(const std::vector<Piece> &pieces) override { out_.write(pieces); }
  void receive(const std::vector<Piece> &pieces) override { in_.read(pieces); }
  bool reads_in_place() const override { return inPlace_; }

private:
  Pipe &out_, &in_;
  const bool inPlace_;
};

/// Replicas 1 and 2 of three, and their trainer, are in another task than the server of w -= mean gradient. Beside w
/// there is a table, of which they pull rows, and of which an update takes 1 from each element.
class Job {
public:
  explicit Job(bool inPlace) : inPlace_(inPlace) {
    LocalServerConfig config;
    config.servers = &servers_;
    config.replicas = 3;
    config.variables = {{w, sizeof w}};
    config.tables = {reinterpret_cast<const char *>(table)};
    config.reportBytes = sizeof(int32_t);
    config.updateReportBytes = sizeof(float);
    config.listeners = 2;
    config.update = [this] {
      float taken[2];
      void *const results[] = {taken};
      local->take(results);
      for (int i = 0; i < 2; ++i)
        w[i] -= taken[i];
      for (auto &row : table)
        for (float &element : row)
          element -= 1;
      local->say(&taken[0]);
      return true;
    };
    local = std::make_unique<LocalParameterServer>(std::move(config));
    std::vector<std::unique_ptr<Channel>> channels;
    for (int i = 0; i < 3; ++i) {
      channels.push_back(std::make_unique<End>(pipes_[i][0], pipes_[i][1], inPlace));
      answering_.emplace_back([this, i] {
        End end(pipes_[i][1], pipes_[i][0], inPlace_);
        answer(*local, end, sizes_, 1);
      });
    }
    remote = std::make_unique<RemoteParameterServer>(sizes_, 1, std::move(channels));
  }
  ~Job() {
    remote->leave(1);
    remote->leave(2);
    remote->leaveAsTrainer();
    for (std::thread &thread : answering_)
      thread.join();
  }

  static std::pair<float, int64_t> pull(ParameterServer &server, int32_t replica) {
    return pull(server, replica, {0, 0, 0, 0}).first;
  }
  /// And the rows of the table that `ids` name.
  static std::pair<std::pair<float, int64_t>, std::vector<std::array<float, 2>>>
  pull(ParameterServer &server, int32_t replica, std::array<int32_t, 4> ids) {
    float value[2] = {};
    std::vector<std::array<float, 2>> rows(4, {-7, -7});
    void *const values[] = {value, rows.data()}, *const indices[] = {ids.data()};
    const std::optional<int64_t> version = server.pull(replica, values, indices);
    return {{version ? value[0] : -1.0F, version.value_or(-1)}, rows};
  }
  static void push(ParameterServer &server, int32_t replica, int64_t version, float gradient) {
    const float both[2] = {gradient, gradient};
    const void *const gradients[] = {both};
    server.push(replica, version, gradients, &replica);
  }

  float w[2] = {10, 10};
  float table[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  std::unique_ptr<LocalParameterServer> local;
  std::unique_ptr<RemoteParameterServer> remote;

private:
  const bool inPlace_;
  drt_gradient gradient_{"w", DRT_F32, DRT_REDUCE_MEAN, 2};
  int64_t pulled_ = 0;
  drt_pulled_rows rows_{1, 3, 2 * sizeof(float), 4, DRT_I32};
  drt_servers servers_{DRT_SERVE_BOUNDED, 3, 0, 1, &gradient_, 1, &pulled_, 1, &rows_};
  const ServedSizes sizes_{&servers_, {sizeof w}, sizeof(int32_t), sizeof(float)};
  Pipe pipes_[3][2];
  std::vector<std::thread> answering_;
};

} // namespace

TEST_CASE("replicas of another task pull, push and wait as the server's own do") {
  const bool inPlace = GENERATE(true, false);
  Job job(inPlace);
  job.local->allowUpdate();
  CHECK(Job::pull(*job.local, 0) == std::pair(10.0F, int64_t(0)));
  CHECK(Job::pull(*job.remote, 1) == std::pair(10.0F, int64_t(0)));
  CHECK(Job::pull(*job.remote, 2) == std::pair(10.0F, int64_t(0)));
  Job::push(*job.remote, 2, 0, 3);
  Job::push(*job.local, 0, 0, 1);
  Job::push(*job.remote, 1, 0, 2);
  // Its trainer is told of the update, with the reports of all three in their order, and what the update says itself.
  std::vector<std::vector<char>> reports;
  REQUIRE(job.remote->waitForUpdate(reports));
  REQUIRE(reports.size() == 4);
  for (int32_t i = 0; i < 3; ++i)
    CHECK(*reinterpret_cast<const int32_t *>(reports[static_cast<size_t>(i)].data()) == i);
  REQUIRE(reports[3].size() == sizeof(float));
  CHECK(*reinterpret_cast<const float *>(reports[3].data()) == 2.0F);
  // The token comes with what the replica pulls next.
  CHECK(job.remote->takeToken(1));
  CHECK(Job::pull(*job.remote, 1) == std::pair(8.0F, int64_t(1)));
}

TEST_CASE("a server that stops sends the replicas of other tasks away") {
  Job job(false);
  job.local->stop();
  CHECK(Job::pull(*job.remote, 1).second == -1);
  std::vector<std::vector<char>> reports;
  CHECK_FALSE(job.remote->waitForUpdate(reports));
}

TEST_CASE("a replica that there is not, and an unknown wish, are errors") {
  LocalServerConfig config;
  drt_servers servers{};
  config.servers = &servers;
  config.replicas = 2;
  LocalParameterServer local(std::move(config));
  const ServedSizes sizes{&servers, {}, 0};
  struct Request {
    int32_t wish, replica;
    int64_t version;
  };
  Request request = GENERATE(Request{0, 2, 0}, Request{2, -1, 0}, Request{99, 0, 0});
  Pipe out, in;
  End end(out, in, false);
  in.write({{reinterpret_cast<char *>(&request), sizeof request}});
  CHECK_THROWS_AS(answer(local, end, sizes, 0), Error);
}

TEST_CASE("rows come as the update left them that the variables come of") {
  const bool inPlace = GENERATE(true, false);
  using Rows = std::vector<std::array<float, 2>>;
  Job job(inPlace);
  job.local->allowUpdate();
  const std::array<int32_t, 4> ids = {2, 0, 2, 3}; // one twice, and one that is no row
  const Rows before = {{5, 6}, {1, 2}, {5, 6}, {0, 0}};
  CHECK(Job::pull(*job.local, 0, ids).second == before);
  CHECK(Job::pull(*job.remote, 1, ids).second == before);
  CHECK(Job::pull(*job.remote, 2, {1, 1, -1, 1}).second == Rows{{3, 4}, {3, 4}, {0, 0}, {3, 4}});
  Job::push(*job.remote, 2, 0, 3);
  Job::push(*job.local, 0, 0, 1);
  Job::push(*job.remote, 1, 0, 2);
  std::vector<std::vector<char>> reports;
  REQUIRE(job.remote->waitForUpdate(reports));
  job.remote->takeToken(1);
  CHECK(Job::pull(*job.remote, 1, ids) == std::pair(std::pair(8.0F, int64_t(1)), Rows{{4, 5}, {0, 1}, {4, 5}, {0, 0}}));
  // None at all.
  CHECK(Job::pull(*job.remote, 1, {-1, -1, 3, 9}).second == Rows(4, {0, 0}));
}

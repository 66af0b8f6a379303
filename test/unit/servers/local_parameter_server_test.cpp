//===- local_parameter_server_test.cpp - Servers with scripted arrivals ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "servers/local_parameter_server.h"

#include <catch2/catch.hpp>

#include <memory>
#include <thread>
#include <vector>

using namespace drt;

namespace {

/// One variable w of two elements with the update w -= gradient, beside a moving average a = (a + w) / 2 that only the
/// server touches. What replicas do is a script: each call returns at once, unless a test says otherwise.
class Job {
public:
  Job(int32_t policy, int32_t replicas, int32_t required, int64_t staleness, int32_t reduction = DRT_REDUCE_MEAN,
      int32_t listeners = 1, const drt_exchange *rule = nullptr)
      : gradient_{"w", DRT_F32, reduction, 2, rule},
        servers_{policy, required, staleness, 1, &gradient_, 1, &pulled_, 0, nullptr} {
    LocalServerConfig config;
    config.servers = &servers_;
    config.replicas = replicas;
    config.variables = {{w, sizeof w}};
    config.reportBytes = sizeof(int32_t);
    config.listeners = listeners;
    config.update = [this] {
      float taken[2];
      void *const results[] = {taken};
      server->take(results);
      for (int i = 0; i < 2; ++i)
        w[i] -= taken[i];
      average = (average + w[0]) / 2;
      last = taken[0];
      ++updates;
      return !fails;
    };
    server = std::make_unique<LocalParameterServer>(std::move(config));
  }

  /// What a replica reads; its version is kept for the push.
  float pull(int32_t replica) {
    float value[2];
    void *const values[] = {value};
    versions[replica] = server->pull(replica, values, nullptr).value();
    CHECK(value[0] == value[1]);
    return value[0];
  }
  bool push(int32_t replica, float gradient) {
    const float both[2] = {gradient, gradient};
    const void *const gradients[] = {both};
    return server->push(replica, versions[replica], gradients, &replica);
  }
  void allow(int updates) {
    for (int i = 0; i < updates; ++i)
      server->allowUpdate();
  }
  /// The replicas whose gradients were in the oldest update that was not asked for.
  std::vector<int32_t> takePart() {
    std::vector<std::vector<char>> reports;
    REQUIRE(server->waitForUpdate(reports));
    std::vector<int32_t> replicas;
    for (const std::vector<char> &report : reports)
      replicas.push_back(*reinterpret_cast<const int32_t *>(report.data()));
    return replicas;
  }

  float w[2] = {0, 0}, average = 0, last = 0;
  int updates = 0;
  bool fails = false;
  std::unique_ptr<LocalParameterServer> server;

private:
  drt_gradient gradient_;
  int64_t pulled_ = 0;
  drt_servers servers_;
  int64_t versions[8] = {};
};

} // namespace

TEST_CASE("an update takes exactly as many gradients as it needs") {
  Job job(DRT_SERVE_COUNTED, 3, 3, 0);
  job.allow(2);
  for (int32_t r = 0; r < 3; ++r)
    job.pull(r);
  job.push(2, 6);
  job.push(0, 1);
  CHECK(job.updates == 0);
  CHECK_FALSE(job.server->hasToken(0));
  job.push(1, 2);
  CHECK(job.updates == 1);
  CHECK(job.last == 3); // the mean
  CHECK(job.takePart() == std::vector<int32_t>{0, 1, 2});
  // A token each, and no more.
  for (int32_t r = 0; r < 3; ++r)
    CHECK(job.server->takeToken(r));
  CHECK_FALSE(job.server->hasToken(0));
  CHECK(job.server->counts().accepted == 3);
  CHECK(job.server->counts().dropped == 0);
}

TEST_CASE("an aggregator chooses among the gradients of an update, whichever replicas they are of") {
  const drt_exchange median{DRT_COMPRESS_NONE, 0, DRT_AGGREGATE_MEDIAN, 0, 0};
  const drt_exchange krum{DRT_COMPRESS_NONE, 0, DRT_AGGREGATE_KRUM, 1, 0};
  for (const drt_exchange *rule : {&median, &krum}) {
    Job job(DRT_SERVE_COUNTED, 6, 5, 1, DRT_REDUCE_MEAN, 1, rule);
    job.allow(2);
    for (int32_t r = 0; r < 6; ++r)
      job.pull(r);
    for (int32_t r : {5, 1, 3, 0, 2})
      job.push(r, r == 3 ? 1e6F : static_cast<float>(r));
    CHECK(job.updates == 1);
    // Of 0, 1, 2, 5 and one that is far off. Krum: 1 has the nearest two.
    CHECK(job.last == (rule == &median ? 2 : 1));
  }
  // Of a sum as many times the chosen one.
  Job job(DRT_SERVE_BOUNDED, 3, 3, 0, DRT_REDUCE_SUM, 1, &median);
  job.allow(1);
  for (int32_t r = 0; r < 3; ++r)
    job.pull(r);
  for (int32_t r = 0; r < 3; ++r)
    job.push(r, static_cast<float>(r * r));
  CHECK(job.last == 3);
}

TEST_CASE("a sum over the batch is that of the update's gradients") {
  Job job(DRT_SERVE_COUNTED, 2, 2, 0, DRT_REDUCE_SUM);
  job.allow(1);
  job.pull(0), job.pull(1);
  job.push(0, 1), job.push(1, 2);
  CHECK(job.last == 3);
}

TEST_CASE("a backup's late gradient is dropped, and it goes on with the others") {
  Job job(DRT_SERVE_COUNTED, 3, 2, 0);
  job.allow(3);
  for (int32_t r = 0; r < 3; ++r)
    job.pull(r);
  job.push(0, 1), job.push(2, 3);
  CHECK(job.updates == 1);
  CHECK(job.last == 2);
  job.push(1, 100);
  CHECK(job.updates == 1);
  CHECK(job.server->counts().dropped == 1);
  CHECK(job.server->hasToken(1));
  CHECK(job.server->takeToken(1));
  // It reads what the update left, and counts for the next one.
  CHECK(job.pull(1) == -2);
  CHECK(job.server->takeToken(0));
  job.pull(0);
  job.push(1, 5), job.push(0, 1);
  CHECK(job.updates == 2);
  CHECK(job.last == 3);
  CHECK(job.server->counts().accepted == 4);
  CHECK(job.server->counts().dropped == 1);
  // Two updates gave three tokens each, and two were taken.
  for (int i = 0; i < 4; ++i)
    CHECK(job.server->takeToken(0));
  CHECK_FALSE(job.server->hasToken(0));
}

TEST_CASE("the replica whose gradient comes last is the late one, and one whose gradient is dropped") {
  Job job(DRT_SERVE_COUNTED, 3, 2, 0);
  job.allow(1);
  for (int32_t r = 0; r < 3; ++r)
    job.pull(r);
  job.push(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  job.push(2, 3);
  job.push(1, 100); // too late
  const std::vector<Lateness> late = job.server->lateness();
  CHECK(late[0].ns == 0);
  CHECK(late[2].ns >= 1'000'000);
  CHECK(late[1].ns == 0);
  CHECK(late[1].dropped == 1);
  CHECK(late[0].dropped + late[2].dropped == 0);
}

TEST_CASE("what comes while a complete update waits is already late") {
  Job job(DRT_SERVE_COUNTED, 3, 2, 0); // no update is allowed
  for (int32_t r = 0; r < 3; ++r)
    job.pull(r);
  job.push(0, 1);
  std::thread second([&] { job.push(1, 3); });
  while (job.server->counts().accepted < 2)
    std::this_thread::yield();
  job.push(2, 100);
  CHECK(job.server->counts().dropped == 1);
  CHECK(job.updates == 0);
  job.allow(1);
  second.join();
  CHECK(job.updates == 1);
  CHECK(job.last == 2);
}

TEST_CASE("gradients may be as stale as the policy says") {
  Job job(DRT_SERVE_COUNTED, 2, 1, 1);
  job.allow(3);
  job.pull(0), job.pull(1);
  job.push(0, 1); // update 1
  job.push(1, 2); // one late: counts
  CHECK(job.updates == 2);
  CHECK(job.server->counts().dropped == 0);
  job.push(1, 4); // of version 0, two late
  CHECK(job.updates == 2);
  CHECK(job.server->counts().dropped == 1);
}

TEST_CASE("several batches an update: steps go on by the first tokens") {
  Job job(DRT_SERVE_COUNTED, 2, 4, 0);
  job.allow(2);
  // Two replicas begin with a step each, and two more steps are there from the beginning.
  job.pull(0), job.pull(1);
  job.push(0, 1);
  CHECK(job.server->takeToken(0));
  job.pull(0);
  job.push(0, 2);
  CHECK(job.server->takeToken(0));
  job.pull(0);
  job.push(0, 3);
  CHECK_FALSE(job.server->hasToken(0));
  CHECK(job.updates == 0);
  job.push(1, 6);
  CHECK(job.updates == 1);
  CHECK(job.last == 3);
  CHECK(job.takePart() == std::vector<int32_t>{0, 0, 0, 1});
  for (int i = 0; i < 4; ++i)
    CHECK(job.server->takeToken(1));
  CHECK_FALSE(job.server->hasToken(1));
}

TEST_CASE("a bound: a replica is so many steps ahead, waits, and is released") {
  Job job(DRT_SERVE_BOUNDED, 2, 2, 2);
  job.allow(4);
  CHECK(job.pull(0) == 0);
  job.push(0, 1);
  CHECK(job.server->hasToken(0)); // one ahead
  job.pull(0);
  job.push(0, 3);
  CHECK(job.server->hasToken(0)); // two ahead
  job.pull(0);
  job.push(0, 5);
  CHECK_FALSE(job.server->hasToken(0)); // a fourth step would be three ahead of replica 1
  CHECK(job.server->hasToken(1));
  CHECK(job.updates == 0);
  std::thread waiting([&] { CHECK(job.server->takeToken(0)); });
  // Each update is made of one gradient of each replica, of the same step of theirs.
  CHECK(job.pull(1) == 0);
  job.push(1, 3);
  waiting.join();
  CHECK(job.updates == 1);
  CHECK(job.last == 2);
  CHECK(job.pull(1) == -2);
  job.push(1, 5);
  CHECK(job.last == 4);
  CHECK(job.takePart() == std::vector<int32_t>{0, 1});
  CHECK(job.server->counts().dropped == 0);
}

TEST_CASE("without a bound to spare, replicas are in step") {
  Job job(DRT_SERVE_BOUNDED, 2, 2, 0);
  job.allow(1);
  job.pull(0), job.pull(1);
  job.push(0, 1);
  CHECK_FALSE(job.server->hasToken(0));
  job.push(1, 3);
  CHECK(job.server->hasToken(0));
  CHECK(job.server->hasToken(1));
  CHECK(job.w[0] == -2);
}

TEST_CASE("asynchronous gradients are updates in the order in which they come, however old") {
  Job job(DRT_SERVE_ASYNC, 2, 1, 0);
  job.allow(4);
  job.pull(0), job.pull(1);
  job.push(1, 1);
  CHECK(job.w[0] == -1);
  job.push(0, 2); // computed before that update
  CHECK(job.w[0] == -3);
  CHECK(job.server->hasToken(0));
  job.push(1, 4); // of version 0 still
  CHECK(job.w[0] == -7);
  CHECK(job.takePart() == std::vector<int32_t>{1});
  CHECK(job.takePart() == std::vector<int32_t>{0});
  CHECK(job.takePart() == std::vector<int32_t>{1});
  CHECK(job.server->counts().accepted == 3);
  CHECK(job.server->counts().dropped == 0);
}

TEST_CASE("moving averages advance once an update") {
  Job job(DRT_SERVE_COUNTED, 2, 2, 0);
  job.allow(2);
  job.pull(0), job.pull(1);
  job.push(0, 1), job.push(1, 3); // w = -2
  CHECK(job.average == -1);
  job.pull(0), job.pull(1);
  job.push(0, 1), job.push(1, 3); // w = -4
  CHECK(job.average == -2.5);
}

TEST_CASE("updates wait until they are allowed, and variables are at rest until then") {
  Job job(DRT_SERVE_ASYNC, 2, 1, 0);
  std::thread first([&] { job.pull(0), job.push(0, 1); });
  while (job.server->counts().accepted < 1)
    std::this_thread::yield();
  std::thread second([&] { job.pull(1), job.push(1, 2); });
  while (job.server->counts().accepted < 2)
    std::this_thread::yield();
  CHECK(job.w[0] == 0);
  job.allow(1);
  first.join();
  CHECK(job.takePart() == std::vector<int32_t>{0}); // in their order
  CHECK(job.w[0] == -1);
  job.allow(1);
  second.join();
  CHECK(job.w[0] == -3);
}

TEST_CASE("a snapshot is one for a version, and stays while somebody reads it") {
  Job job(DRT_SERVE_ASYNC, 2, 1, 0);
  job.allow(3);
  const auto valueOf = [](const auto &snapshot) {
    return *reinterpret_cast<const float *>(snapshot->values[0].data());
  };
  auto first = job.server->snapshot();
  CHECK(first == job.server->snapshot());
  CHECK(first->version == 0);
  job.pull(0);
  job.push(0, 1);
  auto second = job.server->snapshot();
  CHECK((first->version == 0 && valueOf(first) == 0));
  CHECK((second->version == 1 && valueOf(second) == -1));
  const char *memory = first->values[0].data();
  first.reset();
  job.push(0, 1);
  CHECK(job.server->snapshot()->values[0].data() == memory);
  CHECK(valueOf(job.server->snapshot()) == -2);
  CHECK(valueOf(second) == -1);
  job.server->stop();
  CHECK(!job.server->snapshot());
}

TEST_CASE("a server that stops sends everybody away") {
  Job job(DRT_SERVE_COUNTED, 2, 2, 0);
  job.pull(0), job.pull(1);
  job.push(0, 1);
  bool went[3] = {true, true, true}; // Catch2 counts in one thread only
  std::thread token([&] { went[0] = job.server->takeToken(0); });
  std::thread push([&] { went[1] = job.push(1, 1); });
  std::vector<std::vector<char>> reports;
  std::thread update([&] { went[2] = job.server->waitForUpdate(reports); });
  job.server->stop();
  token.join(), push.join(), update.join();
  CHECK_FALSE((went[0] || went[1] || went[2]));
  float value[2];
  void *const values[] = {value};
  CHECK_FALSE(job.server->pull(0, values, nullptr).has_value());
}

TEST_CASE("an update that fails stops the server") {
  Job job(DRT_SERVE_ASYNC, 1, 1, 0);
  job.fails = true;
  job.allow(1);
  job.pull(0);
  CHECK_FALSE(job.push(0, 1));
  std::vector<std::vector<char>> reports;
  CHECK_FALSE(job.server->waitForUpdate(reports));
}

TEST_CASE("threads at any pace: nothing is lost, and no half of an update is read") {
  const int32_t policy = GENERATE(DRT_SERVE_COUNTED, DRT_SERVE_BOUNDED, DRT_SERVE_ASYNC);
  constexpr int32_t replicas = 4;
  constexpr int updates = 200;
  const int32_t required = policy == DRT_SERVE_ASYNC ? 1 : policy == DRT_SERVE_COUNTED ? 3 : replicas;
  Job job(policy, replicas, required, policy == DRT_SERVE_BOUNDED ? 2 : 0);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < replicas; ++r)
    threads.emplace_back([&job, r] {
      float value[2];
      void *const values[] = {value};
      const float gradient[2] = {1, 1};
      const void *const gradients[] = {gradient};
      for (;;) {
        const std::optional<int64_t> version = job.server->pull(r, values, nullptr);
        if (!version)
          return;
        if (value[0] != value[1] || value[0] != -static_cast<float>(*version))
          job.fails = true;
        if (!job.server->push(r, *version, gradients, &r) || !job.server->takeToken(r))
          return;
      }
    });
  for (int i = 0; i < updates; ++i) {
    job.server->allowUpdate();
    std::vector<std::vector<char>> reports;
    REQUIRE(job.server->waitForUpdate(reports));
    CHECK(static_cast<int32_t>(reports.size()) == required);
  }
  job.server->stop();
  for (std::thread &thread : threads)
    thread.join();
  CHECK_FALSE(job.fails);
  CHECK(job.updates == updates);
  CHECK(job.w[0] == -updates);
  const GradientCounts counts = job.server->counts();
  CHECK(counts.accepted >= int64_t{updates} * required);
  if (policy != DRT_SERVE_COUNTED)
    CHECK(counts.dropped == 0);
}

TEST_CASE("rows of a sparse gradient lie one behind the other, in the order of replicas") {
  const drt_gradient gradients[] = {{"table", DRT_I32, DRT_REDUCE_JOIN, 2}, {"table", DRT_F32, DRT_REDUCE_JOIN, 4}};
  const drt_servers servers = {DRT_SERVE_COUNTED, 3, 0, 2, gradients, 0, nullptr};
  int32_t indices[6];
  float rows[12];
  LocalParameterServer *taker = nullptr;
  LocalServerConfig config;
  config.servers = &servers;
  config.replicas = 3;
  config.update = [&] {
    void *const results[] = {indices, rows};
    taker->take(results);
    return true;
  };
  LocalParameterServer server(std::move(config));
  taker = &server;
  server.allowUpdate();
  for (const int32_t replica : {2, 0, 1}) {
    const int32_t own[] = {replica, 7}; // 7 is everybody's
    const float values[] = {static_cast<float>(replica), 1, 2, 3};
    const void *const pushed[] = {own, values};
    CHECK(server.push(replica, 0, pushed, nullptr));
  }
  CHECK(std::vector<int32_t>(indices, indices + 6) == std::vector<int32_t>{0, 7, 1, 7, 2, 7});
  CHECK(std::vector<float>(rows, rows + 12) == std::vector<float>{0, 1, 2, 3, 1, 1, 2, 3, 2, 1, 2, 3});
}

TEST_CASE("whoever listens is told of every update, also of the last one behind the end") {
  Job job(DRT_SERVE_ASYNC, 1, 1, 0, DRT_REDUCE_SUM, 2);
  job.allow(2);
  for (float step : {1.0f, 2.0f}) {
    job.pull(0);
    job.push(0, step);
    CHECK(job.takePart() == std::vector<int32_t>{0});
  }
  job.server->stop();
  std::vector<std::vector<char>> reports;
  CHECK(job.server->waitForUpdate(1, reports));
  CHECK(job.server->waitForUpdate(1, reports));
  CHECK(reports.size() == 1);
  CHECK_FALSE(job.server->waitForUpdate(1, reports));
  CHECK_FALSE(job.server->waitForUpdate(reports));
}

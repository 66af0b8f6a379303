//===- served_replicas_test.cpp - Replicas at their own pace --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/shared_memory_communicator.h"
#include "cpu/task.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace drt;

namespace {

constexpr int64_t count = 100;
// In the arena: what is pulled, the gradient, the loss; of the server what is taken.
constexpr int64_t pulledAt = 0, gradientAt = 512, lossAt = 1024, arenaBytes = 4096;

int32_t failingReplica = -1;
bool updatesFail = false;

float *at(drt_replica *replica, int64_t offset) { return reinterpret_cast<float *>(replica->arena + offset); }

// gradient = w - x, where x is the replica's feed; loss = w[0] - x[0].
void step(drt_replica *replica) {
  void *const pulled[] = {at(replica, pulledAt)};
  drt_pull(replica, pulled);
  if (replica->global_index == failingReplica && replica->step == 3)
    drt_fail(replica, "this replica fails");
  const float *x = static_cast<const float *>(replica->feeds[0]);
  for (int64_t i = 0; i < count; ++i)
    at(replica, gradientAt)[i] = at(replica, pulledAt)[i] - x[i];
  *at(replica, lossAt) = at(replica, gradientAt)[0];
  void *const gradients[] = {at(replica, gradientAt)};
  drt_push(replica, gradients);
  drt_take_token(replica);
}

void descend(int64_t begin, int64_t end, const void *, void *const *arguments) {
  float *w = static_cast<float *>(arguments[0]);
  for (int64_t i = begin; i < end; ++i)
    w[i] -= static_cast<const float *>(arguments[1])[i] / 2;
}

void countOne(int64_t begin, int64_t end, const void *, void *const *arguments) {
  for (int64_t i = begin; i < end; ++i)
    ++static_cast<int64_t *>(arguments[0])[i];
}

void update(drt_replica *replica) {
  void *const taken[] = {at(replica, gradientAt)};
  drt_take(replica, taken);
  if (updatesFail)
    drt_fail(replica, "this update fails");
  void *arguments[] = {replica->variables[0], at(replica, gradientAt)};
  drt_update_local(replica, count, descend, arguments);
  drt_update_local(replica, 1, countOne, &replica->variables[1]);
}

void look(drt_replica *replica) {
  std::memcpy(replica->arena, replica->variables[0], sizeof(float));
  drt_barrier(replica);
}

struct Program {
  drt_variable variables[2];
  drt_feed feed;
  drt_fetch loss, first;
  drt_gradient gradient;
  int64_t pulled = 0;
  drt_servers servers;
  drt_entry entries[3];
  drt_program program;

  Program(int32_t policy, int32_t replicas, int32_t required, int64_t staleness) {
    static const int64_t sizes[] = {count};
    variables[0] = {"w", {DRT_F32, 1, sizes}, count * 4, 0, nullptr, nullptr, 0, 0, 0, 0};
    variables[1] = {"global_step", {DRT_I64, 0, nullptr}, 8, 0, nullptr, nullptr, 0, 0, 0, 0};
    feed = {"x", {DRT_F32, 1, sizes}, 1, 0};
    loss = {"loss:0", {DRT_F32, 0, nullptr}, DRT_JOIN_MEAN, 0, lossAt, nullptr};
    first = {"w:0", {DRT_F32, 0, nullptr}, DRT_JOIN_FIRST, 0, 0, nullptr};
    gradient = {"w", DRT_F32, DRT_REDUCE_MEAN, count};
    servers = {policy, required, staleness, 1, &gradient, 1, &pulled, 0, nullptr};
    entries[0] = {"step", step, 1, &feed, 1, &loss, 0, nullptr, 0, nullptr};
    entries[1] = {"update", update, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr};
    entries[2] = {"eval", look, 0, nullptr, 1, &first, 0, nullptr, 0, nullptr};
    program = {DRT_ABI_VERSION, "0", "g", "s", "cpu", 0,  replicas, arenaBytes, 1,       nullptr, 2, variables, 1, 3,
               entries,         0,   0,   1,   0,     "", nullptr,  0,          nullptr, &servers};
  }
};

TaskConfig configOf(int32_t replicas) {
  TaskConfig config;
  config.numReplicas = config.localReplicas = config.hostReplicas = replicas;
  return config;
}

/// Every replica's x is its number, in all steps.
TaskRuntime::FeedReplica feeding(int32_t replicas) {
  static std::vector<std::vector<float>> shares(8);
  for (int32_t r = 0; r < replicas; ++r)
    shares[static_cast<size_t>(r)].assign(count, static_cast<float>(r));
  return [replicas](int32_t replica, int64_t, const std::function<void(int32_t, const void *)> &set) {
    if (replica < replicas)
      set(0, shares[static_cast<size_t>(replica)].data());
  };
}

/// Two tasks of one host with a replica and two, a thread each. Returns what each threw, "" for nothing.
std::vector<std::string> runTasks(const drt_program &program, const std::function<void(CpuTask &, int32_t)> &body) {
  const int file = make_shared_file(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Progress progress;
      SharedMemoryOptions options;
      options.rank = rank;
      options.size = 2;
      options.file = file;
      const std::unique_ptr<Communicator> communicator = make_shared_memory_communicator(options, progress);
      TaskConfig config = configOf(3);
      config.firstReplica = rank;
      config.localReplicas = rank + 1;
      try {
        CpuTask task(program, communicator.get(), config);
        body(task, rank);
      } catch (const std::exception &error) {
        errors[static_cast<size_t>(rank)] = error.what();
        communicator->abort(error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  close(file);
  return errors;
}

/// Of all replicas' feeds those of a task of runTasks.
TaskRuntime::FeedReplica feedingOf(const TaskRuntime::FeedReplica &all, int32_t rank) {
  return [all, rank](int32_t replica, int64_t step, const auto &set) {
    if (replica <= rank)
      all(rank + replica, step, set);
  };
}

float valueOf(const CpuTask &task) { return *static_cast<const float *>(task.variable(0)); }
int64_t stepOf(const CpuTask &task) { return *static_cast<const int64_t *>(task.variable(1)); }

} // namespace

TEST_CASE("a gradient of every replica: as if they took each step together") {
  const int32_t replicas = 3;
  Program plan(DRT_SERVE_BOUNDED, replicas, replicas, 0);
  CpuTask task(plan.program, nullptr, configOf(replicas));
  task.serve(feeding(replicas), 0);
  float w = 0;
  for (int64_t k = 0; k < 20; ++k) {
    task.enqueue(plan.entries[0], k);
    task.wait();
    // Each replica's own loss, and the mean's update.
    for (int32_t r = 0; r < replicas; ++r)
      CHECK(*static_cast<const float *>(task.fetched(r, plan.loss)) == w - static_cast<float>(r));
    w -= (w - 1) / 2;
    CHECK(valueOf(task) == Approx(w));
    CHECK(stepOf(task) == k + 1);
  }
  task.stopServing();
  CHECK(task.gradientCounts().dropped == 0);
  CHECK(task.atRest());
}

TEST_CASE("other entries run between updates, with the variables at rest") {
  const int32_t replicas = 2;
  Program plan(DRT_SERVE_ASYNC, replicas, 1, 0);
  CpuTask task(plan.program, nullptr, configOf(replicas));
  task.serve(feeding(replicas), 0);
  for (int64_t k = 0; k < 30; ++k) {
    task.enqueue(plan.entries[0], k);
    task.wait();
    const float w = valueOf(task);
    task.run(plan.entries[2], k);
    CHECK(*static_cast<const float *>(task.fetched(0, plan.first)) == w);
    CHECK(*static_cast<const float *>(task.fetched(1, plan.first)) == w);
    CHECK(valueOf(task) == w);
    CHECK(stepOf(task) == k + 1);
  }
  task.stopServing();
  CHECK(task.gradientCounts().dropped == 0);
  CHECK(task.gradientCounts().accepted >= 30);
}

TEST_CASE("fewer gradients than replicas, and more") {
  const int32_t replicas = 3, required = GENERATE(1, 2, 5);
  Program plan(DRT_SERVE_COUNTED, replicas, required, 0);
  CpuTask task(plan.program, nullptr, configOf(replicas));
  task.serve(feeding(replicas), 0);
  // Two updates are allowed at once, as a trainer does that runs ahead.
  task.enqueue(plan.entries[0], 0);
  for (int64_t k = 0; k < 40; ++k) {
    if (k + 1 < 40)
      task.enqueue(plan.entries[0], k + 1);
    task.wait();
  }
  task.stopServing();
  CHECK(stepOf(task) == 40);
  CHECK(valueOf(task) >= 0);
  CHECK(valueOf(task) <= 2);
  CHECK(task.gradientCounts().accepted >= int64_t{40} * required);
}

TEST_CASE("a failure of a replica or of an update ends all of them") {
  const bool inUpdate = GENERATE(false, true);
  const int32_t replicas = 3;
  failingReplica = inUpdate ? -1 : 1;
  Program plan(DRT_SERVE_BOUNDED, replicas, replicas, 1);
  {
    CpuTask task(plan.program, nullptr, configOf(replicas));
    task.serve(feeding(replicas), 0);
    std::string error;
    try {
      for (int64_t k = 0; k < 20; ++k) {
        updatesFail = inUpdate && k == 5;
        task.enqueue(plan.entries[0], k);
        task.wait();
      }
    } catch (const Error &thrown) {
      error = thrown.what();
    }
    CHECK(error == (inUpdate ? "this update fails" : "this replica fails"));
    CHECK(task.atRest());
  }
  failingReplica = -1;
  updatesFail = false;
}

TEST_CASE("what a feed throws ends the task") {
  Program plan(DRT_SERVE_ASYNC, 2, 1, 0);
  CpuTask task(plan.program, nullptr, configOf(2));
  task.serve([](int32_t, int64_t, const auto &) { throw Error("there are no data"); }, 0);
  const auto step = [&] {
    task.enqueue(plan.entries[0], 0);
    task.wait();
  };
  CHECK_THROWS_WITH(step(), "there are no data");
}

TEST_CASE("replicas of two tasks train the first one's variables") {
  const int32_t policy = GENERATE(DRT_SERVE_BOUNDED, DRT_SERVE_COUNTED, DRT_SERVE_ASYNC);
  Program plan(policy, 3, policy == DRT_SERVE_ASYNC ? 1 : 3, 0);
  std::vector<float> seen[2];
  float value = 0;
  int64_t step = 0;
  const TaskRuntime::FeedReplica feeds = feeding(3);
  const auto errors = runTasks(plan.program, [&](CpuTask &task, int32_t rank) {
    task.serve(feedingOf(feeds, rank), 0);
    for (int64_t k = 0; k < 20; ++k) {
      task.enqueue(plan.entries[0], k);
      task.wait();
      seen[rank].push_back(*static_cast<const float *>(task.fetched(0, plan.loss)));
    }
    task.stopServing();
    if (rank == 0) {
      value = valueOf(task);
      step = stepOf(task);
    }
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(step == 20);
  // Whose gradients others have is decided by who is faster.
  if (policy != DRT_SERVE_BOUNDED)
    return;
  float w = 0;
  for (size_t k = 0; k < 20; ++k) {
    CHECK(seen[0][k] == w);
    CHECK(seen[1][k] == w - 1);
    w -= (w - 1) / 2;
  }
  CHECK(value == Approx(w));
}

TEST_CASE("a replica of another task that fails ends all") {
  failingReplica = GENERATE(0, 2);
  Program plan(DRT_SERVE_BOUNDED, 3, 3, 1);
  const TaskRuntime::FeedReplica feeds = feeding(3);
  const auto errors = runTasks(plan.program, [&](CpuTask &task, int32_t rank) {
    task.serve(feedingOf(feeds, rank), 0);
    for (int64_t k = 0; k < 20; ++k) {
      task.enqueue(plan.entries[0], k);
      task.wait();
    }
  });
  CHECK(errors == std::vector<std::string>(2, "this replica fails"));
  failingReplica = -1;
}

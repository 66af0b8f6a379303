//===- task_test.cpp - Replicas, buckets, updates, failures ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/task.h"
#include "test/unit/support/fake_program.h"
#include "test/unit/support/in_process_communicator.h"
#include "test/unit/support/task_config.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace drt;

namespace {

std::vector<float> batchOf(int64_t rows) {
  std::vector<float> x(rows * fake::columns);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 500) * 0.01f;
  return x;
}

void trainSteps(CpuTask &task, const std::vector<float> &x, int64_t batch, int64_t steps, float rate) {
  task.run(*task.findEntry("init"), 0);
  const drt_entry &step = *task.findEntry("step");
  const int64_t shareBytes = batch / task.config().numReplicas * fake::columns * 4;
  for (int64_t k = 0; k < steps; ++k) {
    task.setFeed(0, x.data() + task.config().firstReplica * shareBytes / 4, shareBytes);
    task.setFeed(1, &rate, 0);
    task.run(step, k);
  }
}

double distance(const void *w, const std::vector<float> &expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst =
        std::max<double>(worst, std::abs(static_cast<const float *>(w)[i] - expected[i]) / (1 + std::abs(expected[i])));
  return worst;
}

} // namespace

TEST_CASE("replicas of one task compute what one device computes") {
  const int32_t replicas = GENERATE(1, 2, 3, 4);
  const int64_t batch = 12;
  const std::vector<float> x = batchOf(batch);
  CpuTask task(fake::program(replicas, 1, batch), nullptr, configOf(replicas, 1, 0));
  trainSteps(task, x, batch, 5, 0.25f);
  CHECK(distance(task.variable(0), fake::expected(x, batch, 5, 0.25f)) < 1e-6);
}

TEST_CASE("tasks of several replicas compute what one device computes") {
  const int32_t tasks = GENERATE(2, 3), replicas = tasks * 2;
  const int64_t batch = 12;
  const std::vector<float> x = batchOf(batch), expected = fake::expected(x, batch, 5, 0.25f);
  const drt_program &program = fake::program(replicas, tasks, batch);
  InProcessGroup group(tasks);
  std::vector<double> worst(tasks), sums(tasks);
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < tasks; ++i)
    threads.emplace_back([&, i] {
      CpuTask task(program, &group.member(i), configOf(replicas, tasks, i));
      trainSteps(task, x, batch, 5, 0.25f);
      sums[i] = i + 1;
      task.startSum(&sums[i], 1);
      task.finishSum();
      worst[i] = distance(task.variable(0), expected);
      std::memset(task.variable(0), i, fake::columns * 4);
      task.broadcastVariables();
      if (static_cast<char *>(task.variable(0))[17] != 0)
        worst[i] = 1;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int32_t i = 0; i < tasks; ++i) {
    CHECK(worst[i] < 1e-6);
    CHECK(sums[i] == tasks * (tasks + 1) / 2);
  }
}

TEST_CASE("a replica that fails ends the task with its message") {
  const int32_t replicas = GENERATE(1, 2, 4);
  const std::vector<float> x = batchOf(4);
  CpuTask task(fake::program(replicas, 1, 4), nullptr, configOf(replicas, 1, 0));
  fake::failing_replica = replicas - 1;
  CHECK_THROWS_WITH(trainSteps(task, x, 4, 10, 0.1f), "gradients/w: the test wants it so");
  fake::failing_replica = -1;
  CHECK_THROWS_WITH(task.run(*task.findEntry("init"), 0), "gradients/w: the test wants it so");
}

TEST_CASE("a replica that fails ends the other tasks, too") {
  const std::vector<float> x = batchOf(4);
  const drt_program &program = fake::program(4, 2, 4);
  InProcessGroup group(2);
  fake::failing_replica = 1;
  std::string messages[2];
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      CpuTask task(program, &group.member(i), configOf(4, 2, i));
      try {
        trainSteps(task, x, 4, 10, 0.1f);
      } catch (const Error &error) {
        messages[i] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  fake::failing_replica = -1;
  CHECK(messages[0] == "gradients/w: the test wants it so");
  CHECK(messages[1] == "gradients/w: the test wants it so");
}

TEST_CASE("a timeline has a row a replica, under the nodes' names") {
  TaskConfig config = configOf(2, 1, 0);
  config.timeline = true;
  const std::vector<float> x = batchOf(4);
  CpuTask task(fake::program(2, 1, 4), nullptr, config);
  trainSteps(task, x, 4, 3, 0.1f);
  const std::vector<const TimelineRow *> rows = task.timelineRows();
  REQUIRE(rows.size() == 2);
  for (const TimelineRow *row : rows) {
    const std::vector<TimelineRow::Event> events = row->events();
    REQUIRE(events.size() == 6);
    CHECK(std::string(events[4].name) == "gradients/w");
    CHECK(std::string(events[5].category) == "update");
    CHECK(events[5].step == 2);
    CHECK(events[5].beginNs >= events[4].endNs);
  }
}

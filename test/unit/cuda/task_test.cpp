//===- task_test.cpp - Replicas that are devices --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/device.h"
#include "cuda/task.h"
#include "random/state.h"
#include "test/unit/cuda/training.h"
#include "test/unit/support/in_process_communicator.h"

#include <catch2/catch.hpp>

#include <thread>

using namespace drt;
using namespace drt::cuda;
namespace dp = device_program;

namespace {

std::string errorOf(const std::function<void()> &work) {
  try {
    work();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("devices of one task compute what one computes") {
  const int32_t replicas = GENERATE(1, 2, 4);
  constexpr int64_t steps = 7;
  const std::vector<float> x = dp::examples(2 * dp::rows * replicas); // a step's rows are not those of the step before
  const dp::Expected expected = dp::expected(x, replicas, steps, 0.25f);
  CudaTask task(dp::program(replicas, 1), nullptr, dp::configOf(replicas, 1, 0));
  dp::Training training(task, x, 0.25f);
  training.steps(steps);
  task.fetchVariables();
  CHECK(dp::distance(task.variable(0), expected.w) < 1e-6);
  for (size_t k = 0; k < steps; ++k)
    CHECK(training.losses[k] == Approx(expected.losses[k]).epsilon(1e-5));
}

TEST_CASE("tasks of several devices compute what one computes") {
  const int32_t tasks = GENERATE(2, 3), replicas = tasks * 2;
  if (countDevices() < replicas) {
    WARN("the machine has fewer than " << replicas << " devices");
    return;
  }
  constexpr int64_t steps = 5;
  const std::vector<float> x = dp::examples(2 * dp::rows * replicas);
  const dp::Expected expected = dp::expected(x, replicas, steps, 0.25f);
  const drt_program &program = dp::program(replicas, tasks);
  InProcessGroup group(tasks);
  std::vector<double> worst(static_cast<size_t>(tasks), 1), sums(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < tasks; ++i)
    threads.emplace_back([&, i] {
      CudaTask task(program, &group.member(i), dp::configOf(replicas, tasks, i));
      dp::Training training(task, x, 0.25f);
      training.steps(steps);
      sums[i] = training.losses.back();
      task.startSum(&sums[i], 1);
      task.finishSum();
      task.fetchVariables();
      worst[i] = dp::distance(task.variable(0), expected.w);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int32_t i = 0; i < tasks; ++i) {
    CHECK(worst[i] < 1e-6);
    CHECK(sums[i] / tasks == Approx(expected.losses.back()).epsilon(1e-5));
  }
}

TEST_CASE("variables come from a file to every device") {
  CudaTask task(dp::program(2, 1), nullptr, dp::configOf(2, 1, 0));
  task.run(*task.findEntry("init"), 0);
  task.fetchVariables();
  float *w = static_cast<float *>(task.variable(0));
  CHECK(w[17] == 17);
  std::fill_n(w, dp::columns, 2.5f);
  task.sendVariables();
  task.broadcastVariables();
  // Both replicas' gradient is that of 2.5.
  const std::vector<float> x(static_cast<size_t>(2 * dp::rows * dp::columns), 0.5f);
  task.setFeed(0, x.data(), dp::rows * dp::columns * 4);
  const drt_entry &eval = *task.findEntry("eval");
  task.run(eval, 0);
  for (int32_t i = 0; i < 2; ++i)
    CHECK(*static_cast<const float *>(task.fetched(i, eval.fetches[0])) == 2);
}

TEST_CASE("the state of a random operation begins as on a processor and lies on the device") {
  const std::vector<float> x = dp::examples(dp::rows);
  CudaTask task(dp::program(1, 1), nullptr, dp::configOf(1, 1, 0));
  dp::Training training(task, x, 0.5f);
  training.steps(3);
  std::array<uint32_t, 6> expected = initialGenerator(0, 3, 4, 0).state();
  for (const std::array<uint32_t, 6> &state : training.states) {
    CHECK(state == expected);
    ++expected[0];
  }
}

TEST_CASE("a timeline has the scopes, the collectives and the copies of every device") {
  const int32_t replicas = std::min(2, countDevices());
  const std::vector<float> x = dp::examples(4 * dp::rows * replicas);
  TaskConfig config = dp::configOf(replicas, 1, 0);
  config.timeline = true;
  CudaTask task(dp::program(replicas, 1), nullptr, config);
  const int64_t begun = nowNs();
  dp::Training(task, x, 0.25f).steps(4);
  const std::vector<const TimelineRow *> rows = task.timelineRows();
  REQUIRE(rows.size() == 3 * static_cast<size_t>(replicas));
  const auto named = [&](size_t row, const std::string &name) {
    const std::vector<TimelineRow::Event> events = rows[row]->events();
    return std::count_if(events.begin(), events.end(), [&](const auto &event) { return name == event.name; });
  };
  for (size_t replica = 0; replica < static_cast<size_t>(replicas); ++replica) {
    CHECK(named(3 * replica, "gradients/w") == 4);
    CHECK(named(3 * replica, "train/w") == 4);
    CHECK(named(3 * replica + 1, "group 0") == (replicas > 1 ? 4 : 0));
    CHECK(named(3 * replica + 2, "feeds") == 4);
  }
  for (const TimelineRow *row : rows)
    for (const TimelineRow::Event &event : row->events()) {
      CHECK(event.endNs >= event.beginNs);
      CHECK(event.beginNs > begun - 1000000000);
      CHECK(event.endNs < nowNs() + 1000000000);
    }
}

TEST_CASE("what an entry fails with names the scope") {
  CudaTask good(dp::program(1, 1), nullptr, dp::configOf(1, 1, 0));
  dp::failing = true;
  const std::string error = errorOf([] { CudaTask task(dp::program(1, 1), nullptr, dp::configOf(1, 1, 0)); });
  const std::vector<float> x = dp::examples(dp::rows);
  dp::Training training(good, x, 0.1f);
  const std::string later = errorOf([&] { training.steps(1); });
  dp::failing = false;
  CHECK(error == "gradients/w: the test wants it so");
  CHECK(later == "gradients/w: the test wants it so");
  CHECK(errorOf([&] { good.run(*good.findEntry("init"), 0); }) == later);
}

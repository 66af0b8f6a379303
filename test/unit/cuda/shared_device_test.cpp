//===- shared_device_test.cpp - Fewer devices than replicas ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/testing.h"
#include "cuda/task.h"
#include "test/unit/cuda/training.h"

#include <catch2/catch.hpp>

using namespace drt;
using namespace drt::cuda;
namespace dp = device_program;

TEST_CASE("replicas that share a device compute what one computes") {
  constexpr int32_t replicas = 3;
  constexpr int64_t steps = 4;
  const std::vector<float> x = dp::examples(2 * dp::rows * replicas);
  const dp::Expected expected = dp::expected(x, replicas, steps, 0.25f);
  emulated::setDevices(2);
  {
    CudaTask task(dp::program(replicas, 1), nullptr, dp::configOf(replicas, 1, 0));
    dp::Training training(task, x, 0.25f);
    training.steps(steps);
    task.fetchVariables();
    CHECK(dp::distance(task.variable(0), expected.w) < 1e-6);
    CHECK(training.losses.back() == Approx(expected.losses.back()).epsilon(1e-5));
  }
  emulated::setDevices(8);
}

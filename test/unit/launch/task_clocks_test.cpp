//===- task_clocks_test.cpp -----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/task_clocks.h"

#include <catch2/catch.hpp>
#include <random>

using drt::TaskClocks;

namespace {
/// Collectives of tasks whose clocks are `ahead`, at random times in [from, to).
void meet(TaskClocks &clocks, const std::vector<double> &ahead, double from, double to, std::mt19937 &random) {
  constexpr int rounds = 200;
  std::exponential_distribution<double> late(1e-5), takes(1e-5); // 0.1 ms
  for (int i = 0; i < rounds; ++i) {
    const double at = from + (to - from) * i / rounds;
    std::vector<double> came(ahead.size()), went(ahead.size());
    double last = 0;
    for (double &each : came)
      last = std::max(last, each = at + late(random));
    for (size_t task = 0; task < ahead.size(); ++task) {
      went[task] = last + 1e3 + takes(random) + ahead[task];
      came[task] += ahead[task];
    }
    clocks.joined(came, went);
  }
}
} // namespace

TEST_CASE("clocks are compared by collectives") {
  std::mt19937 random(1);
  const std::vector<double> ahead = {0, 3e12, -7e9};
  TaskClocks clocks(ahead.size());
  meet(clocks, ahead, 1e12, 1.001e12, random);
  for (size_t task = 0; task < ahead.size(); ++task)
    CHECK(clocks.ahead(task) == Approx(ahead[task]).margin(1e4));
}

TEST_CASE("clocks that drift are compared anew") {
  std::mt19937 random(2);
  TaskClocks clocks(2);
  meet(clocks, {0, 0}, 1e12, 1.02e12, random);
  CHECK(clocks.ahead(1) == Approx(0).margin(2e4));
  meet(clocks, {0, 5e6}, 1.021e12, 1.06e12, random);
  CHECK(clocks.ahead(1) == Approx(5e6).margin(2e4));
}

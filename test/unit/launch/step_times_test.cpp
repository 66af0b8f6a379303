//===- step_times_test.cpp ------------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/step_times.h"

#include <catch2/catch.hpp>
#include <cstdlib>

using drt::StepTimes;

TEST_CASE("percentiles are right to 1/64") {
  StepTimes times;
  for (int64_t i = 1; i <= 1000; ++i)
    times.add(i * 1000);
  CHECK(times.count() == 1000);
  CHECK(times.least() == 1000);
  CHECK(times.most() == 1000000);
  CHECK(times.mean() == 500500);
  for (const double part : {0.01, 0.5, 0.9, 0.99}) {
    const auto exact = static_cast<int64_t>(part * 1000000);
    CHECK(std::llabs(times.percentile(part) - exact) <= exact / 64 + 1000);
  }
  CHECK(times.percentile(0) <= 1000 + 1000 / 64);
  CHECK(times.percentile(1) <= 1000000);
}

TEST_CASE("short durations are counted exactly, long ones at all") {
  StepTimes times;
  times.add(0);
  CHECK(times.percentile(0.5) == 0);
  for (int64_t i = 0; i < 128; ++i) {
    StepTimes one;
    one.add(i);
    CHECK(one.percentile(0.5) == i);
  }
  StepTimes longest;
  longest.add(INT64_MAX);
  CHECK(longest.percentile(0.5) == INT64_MAX);
}

TEST_CASE("nothing has no percentiles") { CHECK(StepTimes().percentile(0.5) == 0); }

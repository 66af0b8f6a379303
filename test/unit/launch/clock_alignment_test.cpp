//===- clock_alignment_test.cpp -------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/clock_alignment.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

using namespace drt;

namespace {

constexpr int64_t millisecond = 1'000'000, second = 1'000'000'000;

/// Two clocks: the task's is `ahead` at task 0's time 0 and runs faster by `rate`.
struct Clocks {
  int64_t ahead;
  double rate = 0;

  int64_t own(int64_t reference) const {
    return reference + ahead + std::llround(rate * static_cast<double>(reference));
  }
  /// An exchange that begins at task 0's time `at`, with what each way takes.
  void exchange(ClockComparison &comparison, int64_t at, int64_t there, int64_t work, int64_t back) const {
    comparison.exchanged(own(at), at + there, at + there + work, own(at + there + work + back));
  }
  int64_t errorOf(const ClockAlignment &alignment, int64_t reference) const {
    return std::abs(alignment.toReference(own(reference)) - reference);
  }
};

} // namespace

TEST_CASE("the quickest exchange says how clocks stand, and by how much that may be wrong") {
  const Clocks clocks = {-7200 * second};
  ClockComparison comparison;
  // All of the delay is on one way: half of it is the error, as the bound says.
  clocks.exchange(comparison, 8000 * second, 9 * millisecond, 5 * millisecond, 0);
  clocks.exchange(comparison, 8000 * second + 20 * millisecond, 0, 30 * millisecond, 2 * millisecond);
  clocks.exchange(comparison, 8000 * second + 90 * millisecond, 4 * millisecond, 0, 4 * millisecond);
  const ClockAlignment alignment = comparison.alignment(false);
  REQUIRE(alignment.kind() == ClockAlignment::Kind::Measured);
  REQUIRE(alignment.samples().size() == 1);
  CHECK(alignment.samples()[0].uncertaintyNs == millisecond);
  CHECK(clocks.errorOf(alignment, 8000 * second) == millisecond);
  const int64_t at = alignment.samples()[0].atNs;
  CHECK(alignment.uncertaintyNs(at, at) == millisecond);
  // Later it may be wrong by more.
  CHECK(alignment.uncertaintyNs(at, at + 10 * second) == 2 * millisecond);
}

TEST_CASE("bounds hold for whatever messages take, and for clocks that drift") {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    const double rate = std::uniform_real_distribution<double>(-0.9, 0.9)(random) * ClockAlignment::drift;
    const Clocks clocks = {std::uniform_int_distribution<int64_t>(-1000 * second, 1000 * second)(random), rate};
    std::exponential_distribution<double> there(1e-5), back(1e-7); // 0.1 and 10 ms
    ClockComparison comparison;
    const int64_t begin = 2000 * second, end = begin + (run % 3 == 0 ? 1 : 100) * second;
    for (int64_t at = begin; at < end; at += 300 * millisecond)
      clocks.exchange(comparison, at, std::llround(there(random)), 1000, std::llround(back(random)));
    const ClockAlignment alignment = comparison.alignment(false);
    // One nanosecond is that of the rounding.
    const int64_t bound = alignment.uncertaintyNs(clocks.own(begin), clocks.own(end)) + 1;
    int64_t before = INT64_MIN;
    for (int64_t at = begin; at <= end; at += 17 * millisecond) {
      REQUIRE(clocks.errorOf(alignment, at) <= bound);
      // What came first is first.
      const int64_t aligned = alignment.toReference(clocks.own(at));
      REQUIRE(aligned > before);
      before = aligned;
    }
  }
}

TEST_CASE("a long run keeps as many samples as a short one, and the best of them") {
  const Clocks clocks = {5 * second, 0.5 * ClockAlignment::drift};
  ClockComparison comparison;
  const int64_t end = 100000 * second;
  for (int64_t i = 0; i * second < end; ++i)
    clocks.exchange(comparison, i * second, i % 50 == 0 ? 1000 : 50 * millisecond, 0, 1000);
  const ClockAlignment alignment = comparison.alignment(false);
  CHECK(alignment.samples().size() <= 1024);
  for (int64_t at = 0; at < end; at += 977 * second)
    REQUIRE(clocks.errorOf(alignment, at) < 10 * millisecond);
}

TEST_CASE("tasks that have the same clock agree, unless exchanges say otherwise") {
  ClockComparison none;
  CHECK(none.alignment(true).kind() == ClockAlignment::Kind::Shared);
  CHECK(none.alignment(false).kind() == ClockAlignment::Kind::Unknown);
  CHECK(none.alignment(false).toReference(17) == 17);
  ClockComparison same, other;
  Clocks{0}.exchange(same, second, 3 * millisecond, 0, 0);
  CHECK(same.alignment(true).kind() == ClockAlignment::Kind::Shared);
  CHECK(same.alignment(true).toReference(second) == second);
  CHECK(same.alignment(true).uncertaintyNs(0, second) == 0);
  Clocks{2 * millisecond}.exchange(other, second, 0, 0, millisecond);
  CHECK(other.alignment(true).kind() == ClockAlignment::Kind::Measured);
}

TEST_CASE("exchanges that cannot be are left out") {
  ClockComparison comparison;
  comparison.exchanged(100, 50, 60, 90);                // the answer came before the question
  comparison.exchanged(100, 60, 50, 200);               // it was answered before it came
  comparison.exchanged(100, 50, 250, 200);              // answering took longer than all
  comparison.exchanged(-1, INT64_MAX, INT64_MIN, 1000); // nonsense
  CHECK(comparison.alignment(false).kind() == ClockAlignment::Kind::Unknown);
}

//===- delays_test.cpp - Random pauses that bring threads out of step -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/delays.h"
#include "core/error.h"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace drt;

namespace {
// The variable of the environment for one test.
struct Setting {
  explicit Setting(const char *value) { setenv("DRT_DELAYS", value, 1); }
  ~Setting() { unsetenv("DRT_DELAYS"); }
};
} // namespace

TEST_CASE("delays are off without a seed") {
  unsetenv("DRT_DELAYS");
  CHECK(Delays::fromEnvironment(0) == nullptr);
  const Setting empty("");
  CHECK(Delays::fromEnvironment(0) == nullptr);
}

TEST_CASE("a seed turns delays on, what is no number is refused") {
  {
    const Setting seed("7");
    auto delays = Delays::fromEnvironment(1);
    REQUIRE(delays);
    for (int i = 0; i < 64; ++i)
      delays->pause();
  }
  for (const char *wrong : {"-1", "x", "7x", "99999999999999999999999"}) {
    const Setting setting(wrong);
    CHECK_THROWS_AS(Delays::fromEnvironment(0), Error);
  }
}

//===- random_test.cpp - Random numbers are TensorFlow's -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/distributions.h"
#include "random/state.h"
#include "tensorflow_numbers.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <stdexcept>

using namespace drt;

namespace {
template <class T> T fromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T> void compare(const TensorFlowNumbers &expected) {
  drt_random_desc desc = {
      expected.dtype, expected.distribution, expected.seed, expected.seed2, expected.count, 0, 0, 0, 0};
  T minval = static_cast<T>(expected.minval), maxval = static_cast<T>(expected.maxval);
  std::vector<T> actual(static_cast<size_t>(expected.count));
  if (expected.call < 0) {
    int64_t seeds[2] = {expected.seed, expected.seed2};
    fillRandom(statelessGenerator(seeds), desc, 0, &minval, &maxval, actual.data());
  } else {
    RandomStates states(1, 99);
    for (int call = 0; call <= expected.call; ++call)
      fillRandom(states.reserve(0, desc.seed, desc.seed2, reservedPositions(desc, 1)), desc, 0, &minval, &maxval,
                 actual.data());
  }
  INFO("dtype " << expected.dtype << " distribution " << expected.distribution << " seeds " << expected.seed << ' '
                << expected.seed2 << " count " << expected.count << " call " << expected.call);
  bool exact = expected.distribution == DRT_RANDOM_UNIFORM || expected.distribution == DRT_RANDOM_UNIFORM_INT;
  for (auto [place, bits] : expected.samples) {
    INFO("place " << place);
    T value = fromBits<T>(bits);
    if (exact)
      REQUIRE(actual[static_cast<size_t>(place)] == value);
    else
      REQUIRE(actual[static_cast<size_t>(place)] == Approx(value).epsilon(1e-6).margin(1e-9));
  }
  double sum = 0, size = 0;
  for (T value : actual) {
    sum += static_cast<double>(value);
    size += std::abs(static_cast<double>(value));
  }
  REQUIRE(std::abs(sum - expected.sum) <= 1e-7 * size);
}
} // namespace

TEST_CASE("random numbers are those of TensorFlow's CPU kernels", "[random]") {
  for (const TensorFlowNumbers &expected : tensorflowNumbers()) {
    switch (expected.dtype) {
    case DRT_F32:
      compare<float>(expected);
      break;
    case DRT_F64:
      compare<double>(expected);
      break;
    case DRT_I32:
      compare<int32_t>(expected);
      break;
    default:
      compare<int64_t>(expected);
    }
  }
}

TEST_CASE("unseeded operations differ from each other and repeat with the same entropy", "[random]") {
  auto first = [](RandomStates &states, int32_t state) { return states.reserve(state, 0, 0, 1).next(); };
  RandomStates one(2, 7), same(2, 7), other(2, 8);
  auto a = first(one, 0), b = first(one, 1);
  CHECK(a != b);
  CHECK(first(same, 0) == a);
  CHECK(first(other, 0) != a);
}

TEST_CASE("a run continues behind what the run before reserved", "[random]") {
  RandomStates states(1, 0);
  states.reserve(0, 1, 2, 1000);
  Philox continued = states.reserve(0, 1, 2, 1);
  Philox skipped(1, 2);
  skipped.skip(1000);
  CHECK(continued.next() == skipped.next());
}

TEST_CASE("a stream carries into the upper half of its position", "[random]") {
  Philox before(5, ~uint64_t{0} - 2, 4), after(5, 0, 5);
  uint32_t words[4 * 40];
  before.fill(words, 40);
  Philox::Words expected = after.next();
  CHECK(std::equal(expected.begin(), expected.end(), words + 4 * 3));
}

TEST_CASE("an empty range and a type without numbers are refused", "[random]") {
  drt_random_desc desc = {DRT_I32, DRT_RANDOM_UNIFORM_INT, 1, 2, 4, 0, 0, 0, 0};
  int32_t low = 3, high = 3, out[4];
  CHECK_THROWS_WITH(fillRandom(Philox(1, 2), desc, 0, &low, &high, out),
                    Catch::Contains("minval < maxval, got 3 >= 3"));
  desc.dtype = DRT_BOOL;
  CHECK_THROWS_AS(fillRandom(Philox(1, 2), desc, 0, &low, &high, out), std::runtime_error);
}

namespace {
template <class T> void checkParts(int32_t dtype, int32_t distribution) {
  T low = 0, high = 1000;
  drt_random_desc whole = {dtype, distribution, 3, 4, 61 * 5, 0, 0, 0, 0};
  std::vector<T> expected(static_cast<size_t>(whole.count)), joined(expected.size());
  fillRandom(Philox(3, 4), whole, 0, &low, &high, expected.data());
  drt_random_desc part = {dtype, distribution, 3, 4, 61, 1, 0, 0, 0};
  for (int64_t replica = 0; replica < 5; ++replica)
    fillRandom(Philox(3, 4), part, replica * part.count, &low, &high, joined.data() + replica * part.count);
  INFO("dtype " << dtype << " distribution " << distribution);
  CHECK(joined == expected);
  CHECK(reservedPositions(part, 5) == reservedPositions(whole, 1));
}
} // namespace

TEST_CASE("replicas draw the parts of what one replica draws for the whole batch", "[random]") {
  for (int32_t distribution : {DRT_RANDOM_UNIFORM, DRT_RANDOM_NORMAL, DRT_RANDOM_TRUNCATED_NORMAL}) {
    checkParts<float>(DRT_F32, distribution);
    checkParts<double>(DRT_F64, distribution);
  }
  checkParts<int32_t>(DRT_I32, DRT_RANDOM_UNIFORM_INT);
  checkParts<int64_t>(DRT_I64, DRT_RANDOM_UNIFORM_INT);
}

TEST_CASE("a program goes on where another one's random operations stood", "[random]") {
  RandomStates before(3, 7);
  before.reserve(0, 1, 2, 1000);
  before.reserve(2, 0, 0, 5);
  const std::vector<RandomPosition> positions = before.positions();
  REQUIRE(positions.size() == 2);
  // Another plan numbers them in another way: seeds tell which they are, and of those that have none the number.
  RandomStates after(3, 8);
  after.goOn(positions);
  Philox continued(1, 2), fresh(3, 4), unseeded(7, 3);
  continued.skip(1000);
  unseeded.skip(5);
  CHECK(after.reserve(1, 1, 2, 1).next() == continued.next());
  CHECK(after.reserve(0, 3, 4, 1).next() == fresh.next());
  CHECK(after.reserve(2, 0, 0, 1).next() == unseeded.next());
}

TEST_CASE("of operations with the same seeds each goes on where it was", "[random]") {
  RandomStates before(2, 0);
  before.reserve(0, 1, 2, 10);
  before.reserve(1, 1, 2, 20);
  RandomStates after(2, 0);
  after.goOn(before.positions());
  Philox first(1, 2), second(1, 2);
  first.skip(10);
  second.skip(20);
  CHECK(after.reserve(0, 1, 2, 1).next() == first.next());
  CHECK(after.reserve(1, 1, 2, 1).next() == second.next());
}

TEST_CASE("what has not run since it went on is not forgotten", "[random]") {
  RandomStates before(1, 0), between(1, 0), after(1, 0);
  before.reserve(0, 1, 2, 10);
  between.goOn(before.positions());
  after.goOn(between.positions());
  Philox continued(1, 2);
  continued.skip(10);
  CHECK(after.reserve(0, 1, 2, 1).next() == continued.next());
  CHECK(after.positions().size() == 1);
}

TEST_CASE("of two that share the operations, what neither has run is left", "[random]") {
  RandomStates before(3, 0), step(3, 0), update(3, 0), after(3, 0);
  before.reserve(0, 1, 2, 10);
  before.reserve(1, 3, 4, 20);
  before.reserve(2, 5, 6, 30);
  for (RandomStates *states : {&step, &update})
    states->goOn(before.positions());
  step.reserve(0, 1, 2, 1);
  update.reserve(1, 3, 4, 2);
  const std::vector<RandomPosition> positions = step.positionsWith(update);
  CHECK(positions.size() == 3);
  after.goOn(positions);
  Philox first(1, 2), second(3, 4), third(5, 6);
  first.skip(11);
  second.skip(22);
  third.skip(30);
  CHECK(after.reserve(0, 1, 2, 1).next() == first.next());
  CHECK(after.reserve(1, 3, 4, 1).next() == second.next());
  CHECK(after.reserve(2, 5, 6, 1).next() == third.next());
}

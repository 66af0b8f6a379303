//===- slice_test.cpp - Slices' keys and regions --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/slice_key.h"
#include "checkpoint/slice_region.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

using namespace drt;
using namespace std::string_literals;

namespace {

// What a start contributes to a key, without the name, the rank and the length.
std::string encodedStart(int64_t start) {
  std::string key = encodeSliceKey("", {{start, 0}});
  return key.substr(5, key.size() - 6); // 0, the name's end (0 1), 1 1, ..., 0x80
}

} // namespace

TEST_CASE("a slice's key is TensorFlow's") {
  // Seen in an index that TensorFlow wrote.
  CHECK(encodeSliceKey("rows", {{3, 2}, {0, 3}}) == "\0rows\0\1\1\2\x83\x82\x80\x83"s);
  CHECK(encodeSliceKey("w", {{0, -1}}) == "\0w\0\1\1\1\x80\x7f"s);
  CHECK(encodeSliceKey("a\0b\xff"s, {}) == "\0a\0\xff"
                                           "b\xff\0\0\1\0"s);
}

TEST_CASE("numbers in a key grow by seven bits a byte") {
  CHECK(encodedStart(63) == "\xbf");
  CHECK(encodedStart(64) == "\xc0\x40");
  CHECK(encodedStart(-64) == "\x40");
  CHECK(encodedStart(-65) == "\x3f\xbf");
  CHECK(encodedStart(8191) == "\xdf\xff");
  CHECK(encodedStart(8192) == "\xe0\x20\x00"s);
  CHECK(encodedStart(INT64_C(1) << 55) == "\xff\x80\x80\x00\x00\x00\x00\x00\x00"s);
  CHECK(encodedStart(INT64_MAX) == "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff"s);
  CHECK(encodedStart(INT64_MIN) == "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00"s);
}

TEST_CASE("the order of keys is the order of numbers") {
  std::vector<int64_t> numbers;
  for (int bit = 0; bit < 63; ++bit)
    for (int64_t off : {-1, 0, 1})
      for (int64_t sign : {-1, 1})
        numbers.push_back(sign * ((int64_t(1) << bit) + off));
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i - 1] < numbers[i]) {
      CAPTURE(numbers[i - 1], numbers[i]);
      REQUIRE(encodedStart(numbers[i - 1]) < encodedStart(numbers[i]));
    }
}

TEST_CASE("runs copy exactly what two regions have in common") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    size_t rank = random() % 5;
    Region source, destination;
    for (size_t axis = 0; axis < rank; ++axis)
      for (Region *region : {&source, &destination}) {
        region->begin.push_back(random() % 3);
        region->extent.push_back(random() % 4 + (random() % 8 != 0));
      }
    // An element's number in a space that holds both regions.
    auto numbers = [&](const Region &region) {
      std::vector<int64_t> result{0};
      for (size_t axis = 0; axis < rank; ++axis) {
        std::vector<int64_t> next;
        for (int64_t outer : result)
          for (int64_t i = 0; i < region.extent[axis]; ++i)
            next.push_back(outer * 10 + region.begin[axis] + i);
        result = next;
      }
      return result;
    };
    std::vector<int64_t> from = numbers(source), to(numbers(destination).size(), -1);
    int64_t a, b, count, copied = 0, last = 0;
    for (RegionRuns runs(source, destination); runs.next(a, b, count); copied += count) {
      REQUIRE(a >= last);
      last = a + count;
      for (int64_t i = 0; i < count; ++i)
        to[size_t(b + i)] = from[size_t(a + i)];
    }
    REQUIRE(copied == commonElements(source, destination));
    std::vector<int64_t> want = numbers(destination);
    for (int64_t &element : want)
      if (std::find(from.begin(), from.end(), element) == from.end())
        element = -1;
    REQUIRE(to == want);
  }
}

TEST_CASE("a region that leaves its tensor is told") {
  CHECK(regionError({4, 3}, {{1, 0}, {3, 3}}).empty());
  CHECK(regionError({4, 3}, {{2, 0}, {3, 3}}) == "slice [2:5,0:3] leaves the tensor's shape [4,3]");
  CHECK(regionError({4, 3}, {{-1, 0}, {1, 3}}).find("leaves") != std::string::npos);
  CHECK(regionError({4, 3}, {{0}, {1}}).find("rank") != std::string::npos);
  CHECK(regionError({4}, {{INT64_MAX}, {INT64_MAX}}).find("leaves") != std::string::npos);
}

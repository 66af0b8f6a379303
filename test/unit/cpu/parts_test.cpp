//===- parts_test.cpp - Ranges and reductions -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce.h"
#include "core/ranges.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace drt;

TEST_CASE("ranges cover everything once, in order, at multiples of the grain") {
  for (int64_t count : {0, 1, 63, 64, 65, 128, 1000, 4096, 100003})
    for (int64_t parts : {1, 2, 3, 4, 7, 64}) {
      int64_t at = 0, least = count, most = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Range range = rangeOf(count, parts, i);
        if (!range.empty())
          REQUIRE(range.begin == at);
        REQUIRE((range.begin % rangeGrain == 0 || range.empty()));
        at = std::max(at, range.end);
        least = std::min(least, range.size());
        most = std::max(most, range.size());
      }
      REQUIRE(at == count);
      REQUIRE(most - least < 2 * rangeGrain); // the last part may end within a grain
    }
}

TEMPLATE_TEST_CASE("contributions are summed and divided", "", float, double, int32_t, int64_t) {
  const drt_dtype dtype = std::is_same_v<TestType, float>     ? DRT_F32
                          : std::is_same_v<TestType, double>  ? DRT_F64
                          : std::is_same_v<TestType, int32_t> ? DRT_I32
                                                              : DRT_I64;
  for (int parts = 1; parts <= 6; ++parts)
    for (int64_t count : {1, 17, 1500}) {
      std::vector<TestType> all(parts * 2000);
      for (int part = 0; part < parts; ++part)
        for (int64_t i = 0; i < count; ++i)
          all[part * 2000 + i] = static_cast<TestType>((i + 1) * (part + 1) * 4);
      const int64_t factor = parts * (parts + 1) / 2;
      std::vector<TestType> out(count);
      reduce(dtype, out.data(), {reinterpret_cast<char *>(all.data()), 2000 * sizeof(TestType), parts}, count, 4);
      for (int64_t i = 0; i < count; ++i)
        REQUIRE(out[i] == static_cast<TestType>((i + 1) * factor));
    }
}

TEST_CASE("bfloat16 is summed in float32 and rounded once") {
  const uint16_t one = 0x3f80, small = 0x3b80; // 1 and 2^-8, which vanishes when added to 1 alone
  const uint16_t contributions[3] = {one, small, small};
  uint16_t out = 0;
  reduce(DRT_BF16, &out, {reinterpret_cast<const char *>(contributions), 2, 3}, 1, 1);
  CHECK(out == 0x3f81);
}

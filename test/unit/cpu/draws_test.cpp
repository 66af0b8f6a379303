//===- draws_test.cpp - What an update draws is what a tensor of it would hold -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "drt/drt.h"
#include "random/distributions.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <vector>

namespace {
constexpr int64_t kElements = 10007;

drt_random_desc describe(int32_t dtype, int32_t distribution, bool perReplica) {
  return {dtype, distribution, 0, 0, kElements, perReplica, 0, 0, 0};
}

// An update that keeps what it is given: variable, then the numbers, elements of `bytes` each.
template <int64_t bytes> void keep(int64_t begin, int64_t end, const void *, void *const *arguments) {
  std::memcpy(static_cast<char *>(arguments[0]) + begin * bytes,
              static_cast<const char *>(arguments[1]) + begin * bytes, static_cast<size_t>((end - begin) * bytes));
}

template <int64_t bytes> void compare(const drt_random_desc &desc, const void *minval, const void *maxval) {
  drt_replica replica = {};
  replica.global_index = 3;
  replica.num_replicas = 5;
  const int64_t seed[] = {17, 4};
  std::vector<char> tensor(kElements * bytes), kept(kElements * bytes);
  drt_random_stateless(&replica, &desc, seed, minval, maxval, tensor.data());
  drt_draw draw;
  drt_draw_stateless(&replica, &desc, seed, minval, maxval, &draw);
  std::mt19937 random(static_cast<uint32_t>(desc.distribution));
  // The update's elements are those of the draw from `first` on, as those of a share are.
  for (int64_t first : {int64_t(0), int64_t(1), int64_t(1026)}) {
    void *arguments[] = {kept.data(), &draw};
    drt_drawn_update update = {keep<bytes>, arguments, 2, 1 << 1, first};
    const int64_t count = kElements - first;
    for (int64_t begin = 0; begin < count;) {
      const int64_t end = std::min<int64_t>(count, begin + 1 + static_cast<int64_t>(random() % 3000));
      drt_update_drawn(begin, end, nullptr, reinterpret_cast<void *const *>(&update));
      begin = end;
    }
    REQUIRE(std::memcmp(kept.data(), tensor.data() + first * bytes, static_cast<size_t>(count * bytes)) == 0);
  }
}
} // namespace

TEST_CASE("parts of a tensor are drawn by themselves, and the generator goes on once", "[draws]") {
  const int32_t distribution = GENERATE(DRT_RANDOM_UNIFORM, DRT_RANDOM_NORMAL, DRT_RANDOM_TRUNCATED_NORMAL);
  drt_replica replica = {};
  const int64_t seed[] = {17, 4};
  const drt_random_desc all = describe(DRT_F32, distribution, false);
  std::vector<float> tensor(kElements), parts(kElements);
  drt_random_stateless(&replica, &all, seed, nullptr, nullptr, tensor.data());
  uint64_t reserved = 0;
  for (int64_t first = 0, count; first < kElements; first += count) {
    count = std::min<int64_t>(kElements - first, 3001);
    drt_random_desc part = all;
    part.count = count;
    part.whole = kElements;
    part.first = first;
    drt_random_stateless(&replica, &part, seed, nullptr, nullptr, parts.data() + first);
    drt_draw draw;
    drt_draw_stateless(&replica, &part, seed, nullptr, nullptr, &draw);
    REQUIRE(draw.first == first);
    reserved += drt::reservedPositions(part, 1);
  }
  CHECK(parts == tensor);
  CHECK(reserved == drt::reservedPositions(all, 1));
}

TEST_CASE("an update draws the numbers of a tensor in parts", "[draws]") {
  const bool perReplica = GENERATE(false, true);
  for (int32_t distribution : {DRT_RANDOM_UNIFORM, DRT_RANDOM_NORMAL, DRT_RANDOM_TRUNCATED_NORMAL}) {
    compare<4>(describe(DRT_F32, distribution, perReplica), nullptr, nullptr);
    compare<8>(describe(DRT_F64, distribution, perReplica), nullptr, nullptr);
  }
  const int32_t low = -5, high = 1000;
  compare<4>(describe(DRT_I32, DRT_RANDOM_UNIFORM_INT, perReplica), &low, &high);
  const int64_t lowest = -(int64_t(1) << 40), highest = int64_t(1) << 50;
  compare<8>(describe(DRT_I64, DRT_RANDOM_UNIFORM_INT, perReplica), &lowest, &highest);
  compare<8>(describe(DRT_I64, DRT_RANDOM_UNIFORM_INT, perReplica), nullptr, nullptr);
}

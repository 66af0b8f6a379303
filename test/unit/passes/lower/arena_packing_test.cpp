//===- arena_packing_test.cpp - Places of blocks that live for a while ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/ArenaPacking.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

using distc::LiveBlock;

// Replays the entry: at every block's begin, its neighbours in memory must be clear of it.
static void checkApart(const std::vector<LiveBlock> &blocks, int64_t bytes) {
  std::multimap<int64_t, std::pair<int, const LiveBlock *>> events;
  for (const LiveBlock &block : blocks) {
    REQUIRE(block.place % distc::kPlaceAlignment == 0);
    REQUIRE(block.place + block.bytes <= bytes);
    events.insert({2 * block.begin, {1, &block}});
    events.insert({2 * block.end + 1, {-1, &block}});
  }
  std::map<int64_t, const LiveBlock *> live;
  bool apart = true;
  for (auto &[time, event] : events) {
    auto [sign, block] = event;
    if (sign < 0) {
      live.erase(block->place);
      continue;
    }
    auto [at, inserted] = live.insert({block->place, block});
    apart &= inserted;
    if (at != live.begin())
      apart &= std::prev(at)->first + std::prev(at)->second->bytes <= block->place;
    if (std::next(at) != live.end())
      apart &= block->place + block->bytes <= std::next(at)->first;
  }
  CHECK(apart);
}

TEST_CASE("blocks that are in use at the same time lie apart") {
  std::mt19937_64 random(7);
  for (int64_t count : {10, 3000, 30000}) {
    std::vector<LiveBlock> blocks;
    for (int64_t i = 0; i < count; ++i) {
      int64_t length = random() % 4 ? random() % 8 : random() % count;
      blocks.push_back({int64_t(random() % 100000), i, i + length});
    }
    int64_t bytes = distc::packArena(blocks);
    checkApart(blocks, bytes);
  }
}

TEST_CASE("memory is used again") {
  std::vector<LiveBlock> blocks;
  for (int64_t i = 0; i < 100; ++i)
    blocks.push_back({1000, i, i + 1});
  CHECK(distc::packArena(blocks) == 2 * 1024);
}

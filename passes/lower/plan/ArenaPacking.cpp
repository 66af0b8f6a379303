//===- ArenaPacking.cpp - Places for tensors that live for a while --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/ArenaPacking.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

using namespace llvm;

namespace distc {
namespace {

constexpr size_t kGreedyBlocks = 3000;

int64_t paddedBytes(const LiveBlock &block) {
  return std::max<int64_t>(alignTo(block.bytes, kPlaceAlignment), kPlaceAlignment);
}

// Blocks by decreasing size, each into the smallest gap between those that are in use at the same time.
int64_t packGreedily(ArrayRef<LiveBlock *> blocks) {
  std::vector<LiveBlock *> placed; // by place
  int64_t top = 0;
  for (LiveBlock *block : blocks) {
    const int64_t bytes = paddedBytes(*block);
    int64_t free = 0, best = -1, bestGap = INT64_MAX;
    for (const LiveBlock *other : placed) {
      if (other->end < block->begin || other->begin > block->end)
        continue;
      int64_t gap = other->place - free;
      if (gap >= bytes && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, other->place + paddedBytes(*other));
    }
    block->place = best >= 0 ? best : free;
    top = std::max(top, block->place + bytes);
    auto before = [](const LiveBlock *a, const LiveBlock *b) { return a->place < b->place; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block, before), block);
  }
  return top;
}

// The free memory above `base`: extents by place, and by (bytes, place) for the best fit.
class FreeList {
public:
  explicit FreeList(int64_t base) : top(base) {}

  int64_t take(int64_t bytes) {
    auto fit = bySize.lower_bound({bytes, 0});
    if (fit == bySize.end()) {
      int64_t place = top;
      // What is free right below the top grows.
      if (!byPlace.empty() && std::prev(byPlace.end())->first + std::prev(byPlace.end())->second == top) {
        auto last = std::prev(byPlace.end());
        place = last->first;
        remove(place, last->second);
      }
      top = place + bytes;
      return place;
    }
    auto [size, place] = *fit;
    remove(place, size);
    if (size > bytes)
      add(place + bytes, size - bytes);
    return place;
  }

  void give(int64_t place, int64_t bytes) {
    auto next = byPlace.lower_bound(place);
    if (next != byPlace.end() && next->first == place + bytes) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    auto previous = byPlace.lower_bound(place);
    if (previous != byPlace.begin()) {
      --previous;
      if (previous->first + previous->second == place) {
        place = previous->first;
        int64_t size = previous->second;
        remove(place, size);
        bytes += size;
      }
    }
    add(place, bytes);
  }

  int64_t getTop() const { return top; }

private:
  void add(int64_t place, int64_t bytes) {
    byPlace[place] = bytes;
    bySize.insert({bytes, place});
  }
  void remove(int64_t place, int64_t bytes) {
    byPlace.erase(place);
    bySize.erase({bytes, place});
  }

  int64_t top;
  std::map<int64_t, int64_t> byPlace;
  std::set<std::pair<int64_t, int64_t>> bySize;
};

int64_t packInOrderOfTime(ArrayRef<LiveBlock *> blocks, int64_t base) {
  std::vector<LiveBlock *> order(blocks.begin(), blocks.end());
  stable_sort(order, [](const LiveBlock *a, const LiveBlock *b) { return a->begin < b->begin; });
  auto endsLater = [](const LiveBlock *a, const LiveBlock *b) {
    return std::pair(a->end, a->place) > std::pair(b->end, b->place);
  };
  std::priority_queue<LiveBlock *, std::vector<LiveBlock *>, decltype(endsLater)> live(endsLater);
  FreeList memory(base);
  for (LiveBlock *block : order) {
    while (!live.empty() && live.top()->end < block->begin) {
      memory.give(live.top()->place, paddedBytes(*live.top()));
      live.pop();
    }
    block->place = memory.take(paddedBytes(*block));
    live.push(block);
  }
  return memory.getTop();
}

} // namespace

int64_t packArena(MutableArrayRef<LiveBlock> blocks) {
  std::vector<LiveBlock *> order;
  for (LiveBlock &block : blocks)
    order.push_back(&block);
  stable_sort(order, [](const LiveBlock *a, const LiveBlock *b) { return paddedBytes(*a) > paddedBytes(*b); });
  ArrayRef<LiveBlock *> all(order);
  size_t greedy = std::min(all.size(), kGreedyBlocks);
  return packInOrderOfTime(all.drop_front(greedy), packGreedily(all.take_front(greedy)));
}

} // namespace distc

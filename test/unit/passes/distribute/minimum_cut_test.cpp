//===- minimum_cut_test.cpp - The fewest vertices between sources and sinks ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/distribute/synchronize/MinimumCut.h"

#include <bit>
#include <catch2/catch.hpp>
#include <random>
#include <set>

using distc::MinimumCut;

namespace {

struct Case {
  unsigned size = 0;
  std::vector<bool> canCut;
  std::vector<std::pair<unsigned, unsigned>> edges;
  std::vector<unsigned> sources, sinks;

  std::set<unsigned> find() const {
    MinimumCut graph;
    for (unsigned vertex = 0; vertex < size; ++vertex)
      graph.addVertex(canCut[vertex]);
    for (auto [from, to] : edges)
      graph.addEdge(from, to);
    for (unsigned vertex : sources)
      graph.addSource(vertex);
    for (unsigned vertex : sinks)
      graph.addSink(vertex);
    llvm::DenseSet<unsigned> cut = graph.find();
    return {cut.begin(), cut.end()};
  }

  // What the sources reach without the vertices of `cut`; these are reached, and go no further.
  std::set<unsigned> reach(unsigned cut) const {
    std::set<unsigned> reached;
    std::vector<unsigned> work(sources);
    while (!work.empty()) {
      const unsigned vertex = work.back();
      work.pop_back();
      if (!reached.insert(vertex).second || (cut >> vertex & 1))
        continue;
      for (auto [from, to] : edges)
        if (from == vertex)
          work.push_back(to);
    }
    return reached;
  }

  bool separates(unsigned cut) const {
    const std::set<unsigned> reached = reach(cut);
    for (unsigned sink : sinks)
      if (reached.contains(sink) && !(cut >> sink & 1))
        return false;
    return true;
  }
};

unsigned maskOf(const std::set<unsigned> &vertices) {
  unsigned mask = 0;
  for (unsigned vertex : vertices)
    mask |= 1U << vertex;
  return mask;
}

} // namespace

TEST_CASE("a minimum cut is the one nearest to the sources") {
  // 0 -> 1 -> 2: each of them is a cut.
  const Case chain{3, {true, true, true}, {{0, 1}, {1, 2}}, {0}, {2}};
  CHECK(chain.find() == std::set<unsigned>{0});
  // A source that cannot be cut.
  const Case behind{3, {false, true, true}, {{0, 1}, {1, 2}}, {0}, {2}};
  CHECK(behind.find() == std::set<unsigned>{1});
  // Two gradients (1, 2) of one row (0), each scaled (4, 5) by a norm of both (3): they are the cut, and not what is
  // made of them.
  const Case clipped{6,
                     {false, true, true, true, true, true},
                     {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {1, 4}, {3, 4}, {2, 5}, {3, 5}},
                     {0},
                     {4, 5}};
  CHECK(clipped.find() == std::set<unsigned>{1, 2});
  CHECK(Case{2, {true, true}, {}, {0}, {1}}.find().empty());
}

TEST_CASE("minimum cuts of random graphs are those that are found by trying all") {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    Case graph;
    graph.size = 2 + random() % 9;
    for (unsigned vertex = 0; vertex < graph.size; ++vertex)
      graph.canCut.push_back(random() % 4 != 0);
    for (unsigned from = 0; from < graph.size; ++from)
      for (unsigned to = from + 1; to < graph.size; ++to)
        if (random() % 3 == 0)
          graph.edges.emplace_back(from, to);
    graph.sources.push_back(0);
    if (random() % 2)
      graph.sources.push_back(random() % graph.size);
    for (int i = 0; i < 2; ++i)
      if (const unsigned sink = random() % graph.size; graph.canCut[sink])
        graph.sinks.push_back(sink);
    int least = 64;
    std::vector<unsigned> cuts;
    for (unsigned cut = 0; cut < 1U << graph.size; ++cut) {
      bool isAllowed = true;
      for (unsigned vertex = 0; vertex < graph.size; ++vertex)
        isAllowed &= !(cut >> vertex & 1) || graph.canCut[vertex];
      if (!isAllowed || !graph.separates(cut) || std::popcount(cut) > least)
        continue;
      if (std::popcount(cut) < least)
        cuts.clear();
      least = std::popcount(cut);
      cuts.push_back(cut);
    }
    const unsigned found = maskOf(graph.find());
    INFO("round " << round);
    REQUIRE(std::find(cuts.begin(), cuts.end(), found) != cuts.end());
    // Nearest: no other reaches less.
    const std::set<unsigned> reached = graph.reach(found);
    for (unsigned cut : cuts) {
      const std::set<unsigned> others = graph.reach(cut);
      CHECK(std::includes(others.begin(), others.end(), reached.begin(), reached.end()));
    }
  }
}

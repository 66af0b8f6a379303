//===- MinimumCut.cpp - The fewest vertices between sources and sinks --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/distribute/synchronize/MinimumCut.h"

#include <cassert>
#include <limits>

namespace distc {

unsigned MinimumCut::addVertex(bool canCut) {
  auto vertex = static_cast<unsigned>(edges.size() / 2 - 1);
  edges.resize(edges.size() + 2);
  connect(in(vertex), out(vertex), /*isUnlimited=*/!canCut);
  return vertex;
}

void MinimumCut::addEdge(unsigned from, unsigned to) { connect(out(from), in(to), /*isUnlimited=*/true); }

void MinimumCut::addSource(unsigned vertex) {
  if (sources.insert(vertex).second)
    connect(kSource, in(vertex), /*isUnlimited=*/true);
}

void MinimumCut::addSink(unsigned vertex) {
  assert(edges[in(vertex)].front().room == 1 && "a sink must be one that can be cut");
  if (sinks.insert(vertex).second)
    connect(out(vertex), kSink, /*isUnlimited=*/true);
}

void MinimumCut::connect(unsigned from, unsigned to, bool isUnlimited) {
  // No more paths than there are sinks go over any of them.
  const unsigned room = isUnlimited ? std::numeric_limits<unsigned>::max() / 2 : 1;
  edges[from].push_back({to, room, static_cast<unsigned>(edges[to].size())});
  edges[to].push_back({from, 0, static_cast<unsigned>(edges[from].size() - 1)});
}

bool MinimumCut::augment(std::vector<bool> &reached) {
  reached.assign(edges.size(), false);
  // From where, by which edge.
  std::vector<std::pair<unsigned, unsigned>> cameFrom(edges.size());
  std::vector<unsigned> queue = {kSource};
  reached[kSource] = true;
  for (size_t next = 0; next < queue.size() && !reached[kSink]; ++next)
    for (unsigned i = 0; i < edges[queue[next]].size(); ++i)
      if (const Edge &edge = edges[queue[next]][i]; edge.room > 0 && !reached[edge.to]) {
        reached[edge.to] = true;
        cameFrom[edge.to] = {queue[next], i};
        queue.push_back(edge.to);
      }
  if (!reached[kSink])
    return false;
  for (unsigned at = kSink; at != kSource; at = cameFrom[at].first) {
    Edge &edge = edges[cameFrom[at].first][cameFrom[at].second];
    --edge.room;
    ++edges[edge.to][edge.reverse].room;
  }
  return true;
}

llvm::DenseSet<unsigned> MinimumCut::find() {
  std::vector<bool> reached;
  while (augment(reached)) {
  }
  llvm::DenseSet<unsigned> cut;
  for (unsigned vertex = 0; out(vertex) < edges.size(); ++vertex)
    if (reached[in(vertex)] && !reached[out(vertex)])
      cut.insert(vertex);
  return cut;
}

} // namespace distc

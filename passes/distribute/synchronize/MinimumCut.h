//===- MinimumCut.h - The fewest vertices between sources and sinks -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_MINIMUMCUT_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_MINIMUMCUT_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace distc {

/// Of a directed graph the fewest vertices without which no path leads from a source to a sink, by as many paths as
/// have no vertex in common (Menger; Ford and Fulkerson). Takes time proportional to edges times vertices of the cut.
class MinimumCut {
public:
  /// Their numbers count from 0.
  unsigned addVertex(bool canCut);
  void addEdge(unsigned from, unsigned to);
  /// A source that can be cut may be in the cut, and so may a sink, which must be one that can.
  void addSource(unsigned vertex);
  void addSink(unsigned vertex);

  /// Of all cuts with the fewest vertices the one nearest to the sources. Called once.
  llvm::DenseSet<unsigned> find();

private:
  struct Edge {
    unsigned to;
    unsigned room;    // for how many more paths
    unsigned reverse; // its number among the edges of `to`
  };
  // A vertex is two: what comes in, and what goes out, with an edge between them.
  static unsigned in(unsigned vertex) { return 2 + 2 * vertex; }
  static unsigned out(unsigned vertex) { return 3 + 2 * vertex; }
  static constexpr unsigned kSource = 0, kSink = 1;
  void connect(unsigned from, unsigned to, bool isUnlimited);
  /// One more path from the source to the sink; false where there is none. `reached`: from the source.
  bool augment(std::vector<bool> &reached);

  std::vector<llvm::SmallVector<Edge, 4>> edges = std::vector<llvm::SmallVector<Edge, 4>>(2);
  llvm::DenseSet<unsigned> sources, sinks;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_MINIMUMCUT_H

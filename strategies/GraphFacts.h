//===- GraphFacts.h - What builders of strategies know of a graph -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_GRAPHFACTS_H
#define DISTC_STRATEGIES_GRAPHFACTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace distc::strategies {

/// How the training step updates a variable: not at all, or from a gradient of its shape, or of some rows.
enum class Gradient { None, Dense, Sparse };

struct VariableFacts {
  std::string name;
  std::string type; // "float32"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  bool trainable = false;
  Gradient gradient = Gradient::None;

  /// Whether a strategy must say how it is synchronized.
  bool needsStrategy() const { return trainable && gradient != Gradient::None; }
};

/// passes/distribute/strategy/GraphFacts.h takes them from a graph.
struct GraphFacts {
  std::vector<VariableFacts> variables; // in the order of the graph
};

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_GRAPHFACTS_H

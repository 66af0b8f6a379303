//===- random_facts.h - Graphs for tests of strategies, by a seed *- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_STRATEGIES_RANDOM_FACTS_H
#define DISTC_TEST_UNIT_STRATEGIES_RANDOM_FACTS_H

#include "strategies/GraphFacts.h"
#include <random>

namespace distc::strategies {

inline VariableFacts makeVariable(std::string name, std::vector<int64_t> shape, Gradient gradient = Gradient::Dense,
                                  std::string type = "float32") {
  int64_t bytes = type == "float64" ? 8 : 4;
  for (int64_t size : shape)
    bytes *= size;
  return {std::move(name), std::move(type), std::move(shape), bytes, true, gradient};
}

/// Scalars to tensors of rank 3, of odd and even sizes, dense and sparse, and variables that need no strategy.
inline GraphFacts makeRandomFacts(unsigned seed) {
  std::mt19937 random(seed);
  auto draw = [&](int below) { return static_cast<int>(random() % below); };
  static const int64_t sizes[] = {1, 2, 3, 4, 6, 7, 12, 13, 64, 97, 1000};
  GraphFacts facts;
  for (int i = 0, count = 1 + draw(40); i < count; ++i) {
    std::vector<int64_t> shape;
    for (int axis = 0, rank = draw(4); axis < rank; ++axis)
      shape.push_back(sizes[draw(std::size(sizes))]);
    bool isSparse = shape.size() >= 2 && draw(4) == 0;
    facts.variables.push_back(makeVariable("layer_" + std::to_string(i) + "/kernel", shape,
                                           isSparse ? Gradient::Sparse : Gradient::Dense,
                                           draw(5) ? "float32" : "float64"));
    if (draw(6) == 0)
      facts.variables.back().gradient = Gradient::None;
    if (draw(6) == 0)
      facts.variables.back().trainable = false;
  }
  return facts;
}

} // namespace distc::strategies

#endif // DISTC_TEST_UNIT_STRATEGIES_RANDOM_FACTS_H

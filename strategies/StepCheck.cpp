//===- StepCheck.cpp - Whether what a strategy asks of a step suits its entries -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyCheck.h"
#include "llvm/ADT/STLExtras.h"

namespace distc::strategies {

/// The first entry of which `holds`, or -1.
template <typename Predicate> static int findEntry(const Strategy &strategy, Predicate holds) {
  for (auto [i, node] : llvm::enumerate(strategy.node_config()))
    if (holds(node) || llvm::any_of(node.part_config(), holds))
      return i;
  return -1;
}

static llvm::Error checkAveragesDecay(float decay) {
  if (decay >= 0 && decay < 1)
    return llvm::Error::success();
  return llvm::createStringError("the strategy's variable_averages_decay is " + std::to_string(decay) +
                                 "; give at least 0, which keeps no averages, and less than 1");
}

llvm::Error checkSteps(const Strategy &strategy, int replicas, const StrategyLines &lines) {
  int steps = strategy.accumulate_steps(), wanted = strategy.replicas_to_aggregate();
  auto isAsynchronous = [](const Strategy::Node &node) {
    return node.has_pssynchronizer() && !node.pssynchronizer().sync();
  };
  auto isAllReduced = [](const Strategy::Node &node) { return node.has_allreducesynchronizer(); };
  if (steps < 0)
    return llvm::createStringError("the strategy's accumulate_steps is " + llvm::Twine(steps) + "; give at least 1");
  if (wanted < 0)
    return llvm::createStringError("the strategy's replicas_to_aggregate is " + llvm::Twine(wanted) +
                                   "; give at least 1, or leave it out for one gradient from each replica");
  int asynchronous = findEntry(strategy, isAsynchronous), allReduced = findEntry(strategy, isAllReduced);
  auto of = [&](int entry) { return "variable '" + strategy.node_config(entry).var_name() + "'"; };
  if (steps > 1 && asynchronous >= 0)
    return llvm::createStringError(lines.at(asynchronous) + "the strategy accumulates " + llvm::Twine(steps) +
                                   " steps, which needs synchronous training, but the entry of " + of(asynchronous) +
                                   " is not: add sync: true");
  if (wanted && asynchronous >= 0)
    return llvm::createStringError(lines.at(asynchronous) + "the strategy has replicas_to_aggregate " +
                                   llvm::Twine(wanted) + ", which needs synchronous training, but the entry of " +
                                   of(asynchronous) + " is not: add sync: true");
  // A collective has all of its members or none.
  if (wanted && wanted != replicas && allReduced >= 0)
    return llvm::createStringError(lines.at(allReduced) + "the strategy has replicas_to_aggregate " +
                                   llvm::Twine(wanted) + " of " + llvm::Twine(replicas) +
                                   " replicas, which servers alone can count, but " + of(allReduced) +
                                   " is all-reduced: give it a PSSynchronizer");
  return checkAveragesDecay(strategy.variable_averages_decay());
}

} // namespace distc::strategies

//===- StrategyCheck.h - Whether a strategy fits a graph ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_STRATEGYCHECK_H
#define DISTC_STRATEGIES_STRATEGYCHECK_H

#include "strategies/GraphFacts.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"

namespace distc::strategies {

/// Every entry names a variable of the graph, once, and every trained variable has one. Entries of variables that
/// nothing updates are left out later; `remarks` tells of them.
llvm::Error checkAgainstGraph(const Strategy &strategy, const GraphFacts &facts, std::vector<std::string> &remarks);

/// Its replicas are on devices that the resources have, once each, and as many as were asked for.
llvm::Error checkAgainstResources(const Strategy &strategy, const Resources &resources);

/// What the passes can do today: an error names the entry that asks for more.
llvm::Error checkSupported(const Strategy &strategy);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STRATEGYCHECK_H

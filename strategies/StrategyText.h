//===- StrategyText.h - A strategy for people to read -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_STRATEGYTEXT_H
#define DISTC_STRATEGIES_STRATEGYTEXT_H

#include "strategies/GraphFacts.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"
#include "llvm/Support/raw_ostream.h"

namespace distc::strategies {

/// How an entry or a shard is synchronized: "PS sync, staleness 2", "all-reduce, fp16".
std::string describeSynchronizer(const Strategy::Node &node);

/// Where it is: "ps:0", "group 3"; of a partitioned variable, all of them.
std::string describePlace(const Strategy::Node &node);

/// What the whole strategy asks for, a line each: "accumulate_steps 4".
std::vector<std::string> describeSteps(const Strategy &strategy);

/// Tables of variables, of servers and of groups, with bytes and shares; servers that hold nothing are there as well.
/// The strategy was checked against graph and resources.
void printTables(const Strategy &strategy, const GraphFacts &facts, const Resources &resources, llvm::raw_ostream &os);

/// Prints what differs, by variable and by shard; returns whether anything does.
bool printDifferences(const Strategy &a, const Strategy &b, llvm::raw_ostream &os);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STRATEGYTEXT_H

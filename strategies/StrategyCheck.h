//===- StrategyCheck.h - Whether a strategy fits graph and resources -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Everything that can be said of a strategy before anything is built. Errors name the entry, its line where the
// strategy is a text file, and the way out. Time is linear in the strategy, the graph and the resources.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_STRATEGYCHECK_H
#define DISTC_STRATEGIES_STRATEGYCHECK_H

#include "strategies/GraphFacts.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"

namespace distc::strategies {

/// All of the checks below. `lines` are those of the text that the strategy was read from.
llvm::Error checkStrategy(const Strategy &strategy, const GraphFacts &facts, const Resources &resources,
                          std::vector<std::string> &remarks, const StrategyLines &lines = {});

/// Every entry names a variable of the graph, once, and every trained variable has one. Entries of variables that
/// nothing updates are left out later; `remarks` tells of them.
llvm::Error checkAgainstGraph(const Strategy &strategy, const GraphFacts &facts, std::vector<std::string> &remarks,
                              const StrategyLines &lines = {});

/// Its replicas are on devices that the resources have, once each, and as many as were asked for.
llvm::Error checkAgainstResources(const Strategy &strategy, const Resources &resources,
                                  const StrategyLines &lines = {});

/// Every entry, and every shard, has a synchronizer whose numbers are right and whose server there is; partitioners fit
/// the shapes, and shards their partitioners; a group has gradients of one kind. Entries of unknown variables pass.
llvm::Error checkEntries(const Strategy &strategy, const GraphFacts &facts, const Resources &resources,
                         const StrategyLines &lines = {});

/// What the whole strategy asks for suits its entries: accumulated steps, spare replicas, moving averages.
llvm::Error checkSteps(const Strategy &strategy, int replicas, const StrategyLines &lines = {});

/// Whether an update may be made of something else than one gradient of every replica, all of the same step:
/// asynchronous updates, gradients that are counted (replicas_to_aggregate), replicas that are ahead of others
/// (staleness). A server then decides while the program runs what an update is made of.
bool servesAlone(const Strategy &strategy);
/// Whether it must be: replicas that keep in step are within any bound of staleness.
bool needsServer(const Strategy &strategy);
/// Which of these an executable's servers can do.
llvm::Error checkServing(const Strategy &strategy);

/// What native code can be made of today, which is less than what there is: an error names the entry that asks for
/// more.
llvm::Error checkNative(const Strategy &strategy);

/// What a program for processors does otherwise than the strategy says, for a warning; "" where nothing is.
std::string remarkOnProcessors(const Strategy &strategy);
/// The same of a program for GPUs.
std::string remarkOnDevices(const Strategy &strategy);

/// What native code does otherwise with a strategy that lets replicas be ahead of each other, for a warning; "" where
/// none does.
std::string remarkOnStaleness(const Strategy &strategy);

/// How many replicas the strategy has, or the resources where it does not say.
int countReplicas(const Strategy &strategy, const Resources &resources);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STRATEGYCHECK_H

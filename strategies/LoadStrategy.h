//===- LoadStrategy.h - The strategy that a command line names ----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_LOADSTRATEGY_H
#define DISTC_STRATEGIES_LOADSTRATEGY_H

#include "strategies/GraphFacts.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"

namespace distc::strategies {

/// Reads the file `spec`, or builds the strategy "NAME:key=value,..." that it is; checks it (StrategyCheck.h); and
/// makes it complete: entries of variables without update are gone, shards and replicas are named. `remarks` gets what
/// the user should know.
llvm::Expected<Strategy> loadStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources,
                                      std::vector<std::string> &remarks);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_LOADSTRATEGY_H

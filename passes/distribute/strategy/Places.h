//===- Places.h - Which task holds what ---------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_STRATEGY_PLACES_H
#define DISTC_PASSES_DISTRIBUTE_STRATEGY_PLACES_H

#include "dialects/dist/Dist.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// Whether a reduction destination is "ps:K", and not a device (strategies/Destinations.h).
bool isServerName(llvm::StringRef destination);

/// The host of "HOST:CPU:0".
llvm::StringRef getDeviceHost(llvm::StringRef device);

/// Every reduction destination of the strategy, in its order, shards' instead of their variable's.
void forEachDestination(const strategies::Strategy &strategy, llvm::function_ref<void(llvm::StringRef)> visit);

/// The tasks of a topology by what a strategy calls them: the server "ps:1", or the first server on a device's host.
class Places {
public:
  explicit Places(dist::TopologyOp topology);

  /// Where the entry's variable is held; fails with a diagnostic at `op` where there is no such task.
  llvm::FailureOr<dist::PlaceAttr> find(mlir::Operation *op, const strategies::Strategy::Node &node) const;

private:
  llvm::StringMap<dist::PlaceAttr> servers, hosts;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_STRATEGY_PLACES_H

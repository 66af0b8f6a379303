//===- AppliedStrategy.h - What dist-apply-strategy left in a module -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H
#define DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H

#include "dialects/dist/Dist.h"
#include "strategies/StrategyFile.h"
#include <memory>

namespace distc {

/// What `node` says of its variable, or of a shard; null where it has no synchronizer.
dist::SyncAttr getSync(mlir::MLIRContext *context, const strategies::Strategy::Node &node);

/// The strategy as messages have it. In the IR it is attributes of the module and of its variables.
struct AppliedStrategy {
  /// Of the module's variables those that have an entry, in their order. Never null.
  std::shared_ptr<const strategies::Strategy> strategy;
  dist::TopologyOp topology;

  /// Fails with a diagnostic where `module` has no strategy or topology. Time is linear in its variables.
  static llvm::FailureOr<AppliedStrategy> read(mlir::ModuleOp module);
  /// Makes `strategy` the module's, and its entries those of the variables that they name; others have none.
  static void write(mlir::ModuleOp module, const strategies::Strategy &strategy);
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H

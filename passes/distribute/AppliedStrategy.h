//===- AppliedStrategy.h - What dist-apply-strategy left in a module -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_APPLIEDSTRATEGY_H
#define DISTC_PASSES_DISTRIBUTE_APPLIEDSTRATEGY_H

#include "dialects/dist/Dist.h"
#include "strategies/StrategyFile.h"

namespace distc {

struct AppliedStrategy {
  strategies::Strategy strategy;
  dist::TopologyOp topology;

  /// Fails with a diagnostic where `module` has no strategy or topology, or a strategy that does not parse.
  static llvm::FailureOr<AppliedStrategy> read(mlir::ModuleOp module);
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_APPLIEDSTRATEGY_H

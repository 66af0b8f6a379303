//===- AppliedStrategy.h - What dist-apply-strategy left in a module -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H
#define DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H

#include "dialects/dist/Dist.h"
#include "mlir/Pass/AnalysisManager.h"
#include "strategies/StrategyFile.h"
#include <memory>

namespace distc {

struct AppliedStrategy {
  /// Never null.
  std::shared_ptr<const strategies::Strategy> strategy;
  dist::TopologyOp topology;

  /// Fails with a diagnostic where `module` has no strategy or topology, or a strategy that does not parse.
  static llvm::FailureOr<AppliedStrategy> read(mlir::ModuleOp module);
};

/// A module's strategy, parsed once for the passes between which its text is the same: a large graph's is as long as
/// the graph.
class AppliedStrategyAnalysis {
public:
  explicit AppliedStrategyAnalysis(mlir::Operation *module) : module(llvm::cast<mlir::ModuleOp>(module)) {}

  /// As AppliedStrategy::read.
  llvm::FailureOr<AppliedStrategy> read();
  /// Makes `strategy` the module's.
  void write(strategies::Strategy strategy);

  /// What is kept is kept with what it was parsed from, which `read` compares.
  bool isInvalidated(const mlir::AnalysisManager::PreservedAnalyses &) const { return false; }

private:
  mlir::ModuleOp module;
  dist::StrategyAttr applied;
  std::shared_ptr<const strategies::Strategy> strategy;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_STRATEGY_APPLIEDSTRATEGY_H

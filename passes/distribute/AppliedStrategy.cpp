//===- AppliedStrategy.cpp - What dist-apply-strategy left in a module ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/AppliedStrategy.h"

using namespace mlir;

namespace distc {

FailureOr<AppliedStrategy> AppliedStrategy::read(ModuleOp module) {
  auto text = module->getAttrOfType<StringAttr>(dist::kStrategyAttr);
  auto topology = module.lookupSymbol<dist::TopologyOp>(dist::kCluster);
  if (!text || !topology)
    return module.emitError("has no strategy and topology; run dist-apply-strategy first");
  llvm::Expected<strategies::Strategy> strategy = strategies::parseStrategy(text.getValue(), dist::kStrategyAttr);
  if (!strategy)
    return module.emitError(llvm::toString(strategy.takeError()));
  return AppliedStrategy{std::move(*strategy), topology};
}

} // namespace distc

//===- AppliedStrategy.cpp - What dist-apply-strategy left in a module ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/AppliedStrategy.h"

using namespace mlir;

namespace distc {

FailureOr<AppliedStrategy> AppliedStrategy::read(ModuleOp module) { return AppliedStrategyAnalysis(module).read(); }

FailureOr<AppliedStrategy> AppliedStrategyAnalysis::read() {
  auto found = module->getAttrOfType<dist::StrategyAttr>(dist::kStrategyAttr);
  auto topology = module.lookupSymbol<dist::TopologyOp>(dist::kCluster);
  if (!found || !topology)
    return module.emitError("has no strategy and topology; run dist-apply-strategy first");
  if (found != applied) {
    llvm::Expected<strategies::Strategy> parsed = strategies::parseStrategy(found.getText(), dist::kStrategyAttr);
    if (!parsed)
      return module.emitError(llvm::toString(parsed.takeError()));
    applied = found;
    strategy = std::make_shared<const strategies::Strategy>(std::move(*parsed));
  }
  return AppliedStrategy{strategy, topology};
}

void AppliedStrategyAnalysis::write(strategies::Strategy written) {
  MLIRContext *context = module.getContext();
  applied = dist::StrategyAttr::get(context, StringAttr::get(context, strategies::printStrategyLine(written)));
  strategy = std::make_shared<const strategies::Strategy>(std::move(written));
  module->setAttr(dist::kStrategyAttr, applied);
}

} // namespace distc

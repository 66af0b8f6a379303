//===- StrategyBuild.cpp - distc strategy build ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Builder.h"
#include "strategies/GraphFacts.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"
#include "tools/distc/Pipeline.h"
#include "tools/distc/Session.h"

namespace distc {

int strategyBuildCommand(const CompileOptions &options) {
  Session session(options);
  mlir::OwningOpRef<mlir::ModuleOp> module = session.import(options);
  if (!module || !session.run(*module, addGraphStage))
    return session.status();
  strategies::Resources resources = strategies::Resources::local(options.replicas, options.servers);
  if (!options.resources.empty()) {
    auto read = strategies::readResources(options.resources);
    if (auto *message = std::get_if<std::string>(&read))
      return session.fail(*message);
    resources = std::get<strategies::Resources>(read);
  }
  llvm::Expected<strategies::Strategy> strategy =
      strategies::buildStrategy(options.strategy, strategies::computeGraphFacts(*module), resources);
  if (!strategy)
    return session.fail(llvm::toString(strategy.takeError()));
  if (llvm::Error error = strategies::writeStrategy(*strategy, options.output))
    return session.fail(llvm::toString(std::move(error)));
  return kDone;
}

} // namespace distc

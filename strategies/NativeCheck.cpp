//===- NativeCheck.cpp - What native code can be made of ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyCheck.h"

namespace distc::strategies {

llvm::Error checkNative(const Strategy &strategy) {
  auto refuse = [](const llvm::Twine &what, const llvm::Twine &wayOut) {
    return llvm::createStringError(what + ", which is not supported yet by executables; " + wayOut);
  };
  if (strategy.replicas_to_aggregate())
    return refuse("the strategy has replicas_to_aggregate",
                  "leave it out, so that an update takes a gradient from each replica, or train "
                  "an exported graph (--emit=graphdef)");
  auto isAsync = [](const Strategy::Node &node) { return node.has_pssynchronizer() && !node.pssynchronizer().sync(); };
  for (const Strategy::Node &node : strategy.node_config())
    if (isAsync(node) || llvm::any_of(node.part_config(), isAsync))
      return refuse("the strategy's entry of variable '" + node.var_name() +
                        "' asks for asynchronous updates (sync: false)",
                    "say sync: true, or train an exported graph (--emit=graphdef)");
  return llvm::Error::success();
}

std::string remarkOnStaleness(const Strategy &strategy) {
  auto isStale = [](const Strategy::Node &node) {
    return node.has_pssynchronizer() && node.pssynchronizer().sync() && node.pssynchronizer().staleness() > 0;
  };
  for (const Strategy::Node &node : strategy.node_config())
    if (isStale(node) || llvm::any_of(node.part_config(), isStale))
      return "the strategy's entry of variable '" + node.var_name() +
             "' lets replicas be ahead of the slowest one (staleness); an executable's replicas keep in step, so that "
             "none is";
  return "";
}

std::string remarkOnProcessors(const Strategy &strategy) {
  auto namesNccl = [](const Strategy::Node &node) {
    return node.has_allreducesynchronizer() && node.allreducesynchronizer().spec() == autodist::proto::AllReduceSynchronizer::NCCL;
  };
  for (const Strategy::Node &node : strategy.node_config())
    if (namesNccl(node) || llvm::any_of(node.part_config(), namesNccl))
      return "the strategy's entry of variable '" + node.var_name() +
             "' names NCCL, which only GPUs have: on processors the runtime's own all-reduce takes its place. Say spec: AUTO, or compile "
             "with --target=cuda";
  return "";
}

} // namespace distc::strategies

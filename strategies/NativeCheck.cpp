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
    return refuse("the strategy has replicas_to_aggregate", "leave it out");
  if (strategy.variable_averages_decay() > 0)
    return refuse("the strategy keeps moving averages of variables", "leave variable_averages_decay out");
  for (const Strategy::Node &node : strategy.node_config()) {
    std::string entry = "the strategy's entry of variable '" + node.var_name() + "'";
    if (node.has_pssynchronizer())
      return refuse(entry + " asks for a PSSynchronizer", "use AllReduceSynchronizer");
  }
  return llvm::Error::success();
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

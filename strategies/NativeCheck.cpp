//===- NativeCheck.cpp - What native code can be made of ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyCheck.h"

namespace distc::strategies {
namespace {

/// The first entry, or shard, for which `holds` is true; null: none.
const Strategy::Node *findNode(const Strategy &strategy, llvm::function_ref<bool(const Strategy::Node &)> holds) {
  for (const Strategy::Node &node : strategy.node_config()) {
    if (node.part_config().empty() && holds(node))
      return &node;
    for (const Strategy::Node &part : node.part_config())
      if (holds(part))
        return &part;
  }
  return nullptr;
}

bool isAsync(const Strategy::Node &node) { return node.has_pssynchronizer() && !node.pssynchronizer().sync(); }
bool isStale(const Strategy::Node &node) {
  return node.has_pssynchronizer() && node.pssynchronizer().sync() && node.pssynchronizer().staleness() > 0;
}

} // namespace

bool servesAlone(const Strategy &strategy) { return needsServer(strategy) || findNode(strategy, isStale); }

bool needsServer(const Strategy &strategy) {
  return strategy.replicas_to_aggregate() > 0 || findNode(strategy, isAsync);
}

llvm::Error checkServing(const Strategy &strategy) {
  auto refuse = [](const llvm::Twine &what, const llvm::Twine &wayOut) {
    return llvm::createStringError(what + ", which is not supported yet by executables; " + wayOut);
  };
  const Strategy::Node *async = findNode(strategy, isAsync);
  const std::string counts = async                              ? "asynchronous updates (sync: false)"
                             : strategy.replicas_to_aggregate() ? "replicas_to_aggregate"
                                                                : "staleness";
  if (const auto *node = findNode(strategy, [](const auto &node) { return !node.has_pssynchronizer(); }))
    return refuse("the strategy has " + counts + ", but variable '" + node->var_name() + "' is not on a server",
                  "put all variables on servers, or train an exported graph (--emit=graphdef)");
  if (const auto *node = async ? findNode(strategy, [](const auto &node) { return !isAsync(node); }) : nullptr)
    return refuse("variable '" + async->var_name() + "' asks for asynchronous updates (sync: false), and variable '" +
                      node->var_name() + "' for synchronous ones",
                  "say the same for all, or train an exported graph (--emit=graphdef)");
  const int64_t staleness = strategy.node_config().empty() ? 0 : [&] {
    const Strategy::Node *first = findNode(strategy, [](const auto &) { return true; });
    return first ? first->pssynchronizer().staleness() : 0;
  }();
  if (const auto *node =
          findNode(strategy, [&](const auto &node) { return node.pssynchronizer().staleness() != staleness; }))
    return refuse("variable '" + node->var_name() + "' has another staleness than those before it",
                  "say the same for all, or train an exported graph (--emit=graphdef)");
  if (strategy.accumulate_steps() > 1)
    return refuse("the strategy has accumulate_steps and " + counts,
                  "say how many gradients make an update by replicas_to_aggregate alone");
  return llvm::Error::success();
}

llvm::Error checkNative(const Strategy &strategy) {
  return needsServer(strategy) ? checkServing(strategy) : llvm::Error::success();
}

std::string remarkOnStaleness(const Strategy &strategy) {
  const Strategy::Node *node = findNode(strategy, isStale);
  if (!node)
    return "";
  return "the strategy's entry of variable '" + node->var_name() +
         "' lets replicas be ahead of the slowest one (staleness); here an executable's replicas keep in step, so that "
         "none is";
}

std::string remarkOnProcessors(const Strategy &strategy) {
  auto namesNccl = [](const Strategy::Node &node) {
    return node.has_allreducesynchronizer() &&
           node.allreducesynchronizer().spec() == autodist::proto::AllReduceSynchronizer::NCCL;
  };
  if (const Strategy::Node *node = findNode(strategy, namesNccl))
    return "the strategy's entry of variable '" + node->var_name() +
           "' names NCCL, which only GPUs have: on processors the runtime's own all-reduce takes its place. Say spec: "
           "AUTO, or compile "
           "with --target=cuda";
  return "";
}

std::string remarkOnDevices(const Strategy &strategy) {
  using autodist::proto::AllReduceSynchronizer;
  auto namesAlgorithm = [](const Strategy::Node &node) {
    const AllReduceSynchronizer::Spec spec = node.allreducesynchronizer().spec();
    return node.has_allreducesynchronizer() && spec != AllReduceSynchronizer::AUTO &&
           spec != AllReduceSynchronizer::NCCL;
  };
  const Strategy::Node *node = findNode(strategy, namesAlgorithm);
  if (!node)
    return "";
  return "the strategy's entry of variable '" + node->var_name() + "' names " +
         AllReduceSynchronizer::Spec_Name(node->allreducesynchronizer().spec()) +
         ", which processors add up by: between GPUs NCCL chooses an algorithm for itself. Say spec: AUTO, or compile "
         "with --target=cpu";
}

} // namespace distc::strategies

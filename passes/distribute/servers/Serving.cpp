//===- Serving.cpp - Servers that serve on their own, in executables ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/servers/Roles.h"
#include "strategies/StrategyCheck.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTKEEPINSTEP
#include "passes/distribute/Passes.h.inc"

static constexpr llvm::StringLiteral kWhat =
    "servers that serve on their own (sync: false, replicas_to_aggregate, staleness)";
static constexpr llvm::StringLiteral kWayOut =
    "; synchronous servers do, and so does an exported graph (--emit=graphdef)";

std::optional<Serving> getServing(ModuleOp module, const AppliedStrategy &applied) {
  const strategies::Strategy &strategy = *applied.strategy;
  const bool isOwned = llvm::any_of(module.getOps<dfg::VariableOp>(), [](dfg::VariableOp variable) {
    dist::PlaceAttr place = getPlace(variable);
    return place && !isServer(place);
  });
  if (!isOwned || !strategies::servesAlone(strategy))
    return std::nullopt;
  dist::TopologyOp topology = applied.topology;
  Serving serving;
  serving.required = strategy.replicas_to_aggregate() > 0 ? strategy.replicas_to_aggregate()
                                                          : static_cast<int64_t>(topology.getReplicas());
  auto visit = [&](const strategies::Strategy::Node &node) {
    if (!node.has_pssynchronizer())
      return;
    serving.async |= !node.pssynchronizer().sync();
    serving.staleness = std::max<int64_t>(serving.staleness, node.pssynchronizer().staleness());
  };
  for (const strategies::Strategy::Node &node : strategy.node_config()) {
    if (node.part_config().empty())
      visit(node);
    llvm::for_each(node.part_config(), visit);
  }
  if (serving.async)
    serving.required = 1;
  return serving;
}

std::string findServingObstacle(const AppliedStrategy &applied) {
  llvm::Error error = strategies::checkServing(*applied.strategy);
  return error ? llvm::toString(std::move(error)) : std::string();
}

void keepInStep(ModuleOp module, const AppliedStrategy &applied) {
  module.emitWarning(strategies::remarkOnStaleness(*applied.strategy));
  strategies::Strategy strategy = *applied.strategy;
  auto visit = [](strategies::Strategy::Node &node) {
    if (node.has_pssynchronizer())
      node.mutable_pssynchronizer()->clear_staleness();
  };
  for (strategies::Strategy::Node &node : *strategy.mutable_node_config()) {
    visit(node);
    llvm::for_each(*node.mutable_part_config(), visit);
  }
  AppliedStrategy::write(module, strategy);
}

namespace {

struct DistKeepInStep : public impl::DistKeepInStepBase<DistKeepInStep> {
  void runOnOperation() override {
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(getOperation());
    if (failed(applied))
      return signalPassFailure();
    if (strategies::needsServer(*applied->strategy)) {
      getOperation().emitError() << kWhat << " are not supported yet on devices" << kWayOut;
      return signalPassFailure();
    }
    if (strategies::servesAlone(*applied->strategy))
      keepInStep(getOperation(), *applied);
  }
};

} // namespace
} // namespace distc

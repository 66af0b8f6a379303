//===- FollowServers.cpp - Variables whose updates take servers' new values -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/strategy/SyncPolicy.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTFOLLOWSERVERS
#include "passes/distribute/Passes.h.inc"

namespace {

/// One graph's variables that no entry of the strategy names.
class Followers {
public:
  Followers(dfg::GraphOp graph, SyncPolicies &policies)
      : block(graph.getBody().front()), policies(policies), step(graph) {}

  /// Places each with the first server whose new value its update takes; again, since others may follow it.
  void run() {
    auto module = block.getParentOp()->getParentOfType<ModuleOp>();
    for (auto variable : module.getOps<dfg::VariableOp>())
      variables[variable.getSymName()] = variable;
    SmallVector<dfg::UpdateInterface> updates;
    for (auto update : block.getOps<dfg::UpdateInterface>())
      if (isInStep(update) && !policies.hasEntry(getUpdatedVariable(update)))
        updates.push_back(update);
    bool changed = !updates.empty();
    while (changed) {
      changed = false;
      late = dfg::findBehind(block, [&](Operation *op) {
        return llvm::isa<dfg::UpdateInterface>(op) && isInStep(op) && waits(getUpdatedVariable(op));
      });
      for (dfg::UpdateInterface update : updates)
        changed |= follow(update);
    }
  }

private:
  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  /// Whether a server holds the variable and updates it once a step, for all workers.
  bool waits(llvm::StringRef variable) const {
    const SyncPolicy &policy = policies.get(variable);
    return policy.place && !policy.async;
  }

  bool follow(Operation *update) {
    llvm::StringRef name = getUpdatedVariable(update);
    dfg::VariableOp variable = variables.lookup(name);
    if (!variable || policies.get(name).place)
      return false;
    dist::PlaceAttr place = findSource(update);
    if (!place)
      return false;
    variable->setAttr(dist::kPlaceAttr, place);
    policies.setPlace(name, place);
    return true;
  }

  /// The server of a variable that the update's value is computed from, and that is read behind an update of it.
  dist::PlaceAttr findSource(Operation *update) const {
    SmallVector<Operation *> pending = {update};
    llvm::DenseSet<Operation *> seen = {update};
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      for (Value operand : op->getOperands()) {
        auto handle = dfg::isHandle(operand.getType()) ? dfg::getVariableHandle(operand) : dfg::VarHandleOp();
        if (handle && op != update && waits(handle.getVariable()))
          return policies.get(handle.getVariable()).place;
        // What does not run behind an update has none of its values.
        if (Operation *def = operand.getDefiningOp(); def && late.contains(def) && seen.insert(def).second)
          pending.push_back(def);
      }
    }
    return {};
  }

  Block &block;
  SyncPolicies &policies;
  strategies::StepNodes step;
  llvm::StringMap<dfg::VariableOp> variables;
  /// What runs behind a server's update of the step.
  llvm::DenseSet<Operation *> late;
};

struct DistFollowServers : public impl::DistFollowServersBase<DistFollowServers> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<SyncPolicies> policies = SyncPolicies::read(getOperation());
    if (failed(policies))
      return signalPassFailure();
    // Where one worker trains, it knows when it has updated.
    if (policies->replicas == 1 || !policies->hasSync)
      return;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      Followers(graph, *policies).run();
  }
};

} // namespace
} // namespace distc

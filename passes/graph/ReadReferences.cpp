//===- ReadReferences.cpp - References are read where they are used ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeEdges.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/Passes.h"
#include "passes/graph/References.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_READREFERENCES
#include "passes/graph/Passes.h.inc"

namespace {

class References {
public:
  explicit References(dfg::GraphOp graph)
      : block(graph.getBody().front()), builder(graph.getContext()), edges(block),
        late(dfg::findBehind(block,
                             [](Operation *op) { return llvm::isa<dfg::UpdateInterface>(op) || isConditional(op); })) {}

  void run(const llvm::StringSet<> &references) {
    SmallVector<dfg::ReadVariableOp> reads(block.getOps<dfg::ReadVariableOp>());
    for (dfg::ReadVariableOp read : reads)
      if (auto handle = dfg::getVariableHandle(read.getHandle()); handle && references.contains(handle.getVariable()))
        replaceLateUses(read, handle.getVariable(), read.getValue(), findUpdates(read, handle.getVariable()));
    // Those that were made as well.
    reads = llvm::to_vector(block.getOps<dfg::ReadVariableOp>());
    for (dfg::ReadVariableOp read : reads)
      if (auto handle = dfg::getVariableHandle(read.getHandle());
          handle && references.contains(handle.getVariable()) && entersItself(handle))
        replaceEntering(read.getHandle(), read.getValue());
  }

private:
  using Updates = llvm::SetVector<Operation *>;

  /// Whether a loop or a condition of version 1 takes the variable itself, which it does to update it.
  bool entersItself(dfg::VarHandleOp handle) const {
    return llvm::any_of(handle->getUsers(),
                        [](Operation *user) { return getForwarding(user) && isForwarded(user, 0); });
  }

  /// The nodes of version 1's loops and conditions that give a variable on, as their first operand.
  static dfg::OpaqueOp getForwarding(Operation *op) {
    auto opaque = llvm::dyn_cast_if_present<dfg::OpaqueOp>(op);
    return opaque && opaque.getOp().starts_with("Ref") ? opaque : dfg::OpaqueOp();
  }

  /// The variables, slots among them, to which it does something within a loop or a condition: it updates them,
  /// perhaps.
  static SmallVector<dfg::VarHandleOp> getEntered(Operation *op) {
    SmallVector<dfg::VarHandleOp> entered;
    if (!llvm::isa<dfg::OpaqueOp>(op) || getForwarding(op))
      return entered;
    for (Value reference : op->getOperands()) {
      if (!getForwarding(reference.getDefiningOp()))
        continue;
      while (dfg::OpaqueOp forwarding = getForwarding(reference.getDefiningOp()))
        reference = forwarding->getOperand(0);
      if (dfg::VarHandleOp handle = dfg::getVariableHandle(reference))
        entered.push_back(handle);
    }
    return entered;
  }
  static bool isConditional(Operation *op) { return !getEntered(op).empty(); }

  static bool updates(Operation *op, llvm::StringRef variable) {
    if (llvm::any_of(getEntered(op), [&](dfg::VarHandleOp handle) { return handle.getVariable() == variable; }))
      return true;
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    return update && llvm::any_of(update.getWrittenOperands(), [&](unsigned written) {
             auto handle = dfg::getVariableHandle(op->getOperand(written));
             return handle && handle.getVariable() == variable;
           });
  }

  /// Whether it gives a loop's iterations, or a branch, its operand as it is. What a loop's variable begins with is not
  /// meant.
  static bool isForwarded(Operation *op, unsigned operand) {
    StringRef kind = dfg::getKind(op);
    auto isConstant = dfg::getSourceAttribute<BoolAttr>(op, "is_constant");
    return operand == 0 && (kind == "Switch" || (kind == "Enter" && isConstant && isConstant.getValue()));
  }

  /// Loops and branches that take `value`, which was read of a variable that some of them update, take the variable:
  /// what they compute of it reads it then, in each iteration.
  void replaceEntering(Value variable, Value value) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      if (auto identity = llvm::dyn_cast<dfg::IdentityOp>(use.getOwner()))
        replaceEntering(variable, identity.getResult());
      else if (isForwarded(use.getOwner(), use.getOperandNumber()))
        takeVariable(llvm::cast<dfg::OpaqueOp>(use.getOwner()), variable);
    }
  }

  void takeVariable(dfg::OpaqueOp node, Value variable) {
    node.setOp(("Ref" + dfg::getKind(node)).str());
    node->setOperand(0, variable);
    for (Value result : node->getResults())
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses()))
        if (isForwarded(use.getOwner(), use.getOperandNumber()))
          takeVariable(llvm::cast<dfg::OpaqueOp>(use.getOwner()), result);
  }

  /// The updates of `variable` that some node runs behind which takes what `node` gives a loop's iterations.
  void addUpdatesInLoop(Operation *node, llvm::StringRef variable, Updates &found) const {
    for (OpOperand &use : node->getUses()) {
      found.insert_range(findUpdates(use.getOwner(), variable));
      if (isForwarded(use.getOwner(), use.getOperandNumber()))
        addUpdatesInLoop(use.getOwner(), variable, found);
    }
  }

  /// The updates of `variable` that `user` runs behind.
  Updates findUpdates(Operation *user, llvm::StringRef variable) const {
    Updates found;
    if (!late.contains(user))
      return found;
    SmallVector<Operation *> pending = edges.getBefore(user);
    llvm::DenseSet<Operation *> seen(pending.begin(), pending.end());
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      if (updates(op, variable))
        found.insert(op);
      if (late.contains(op))
        for (Operation *before : edges.getBefore(op))
          if (seen.insert(before).second)
            pending.push_back(before);
    }
    return found;
  }

  /// What a read waits for that finds for a use what `update` left.
  void addWaits(Operation *update, OpOperand &use, llvm::SetVector<llvm::StringRef> &waits) {
    Operation *user = use.getOwner();
    if (!isConditional(update)) {
      waits.insert(dfg::getNodeName(update));
      return;
    }
    // It may not run: what the user waits for does. What a loop or a branch takes is not read before.
    if (!isForwarded(user, use.getOperandNumber()))
      for (Operation *before : edges.getBefore(user))
        if (late.contains(before) && before != use.get().getDefiningOp())
          waits.insert(dfg::getNodeName(before));
  }

  /// `value` is what `read` found behind the updates `known`: its users behind another one read again.
  void replaceLateUses(dfg::ReadVariableOp read, llvm::StringRef variable, Value value, const Updates &known) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      Updates behind = findUpdates(user, variable);
      // An Enter waits for nothing; the loop does.
      if (dfg::getKind(user) == "Enter")
        addUpdatesInLoop(user, variable, behind);
      llvm::SetVector<llvm::StringRef> found;
      for (Operation *update : behind)
        if (!known.contains(update))
          addWaits(update, use, found);
      SmallVector<llvm::StringRef> others = found.takeVector();
      if (!others.empty()) {
        llvm::sort(others);
        builder.setInsertionPoint(user);
        auto name = builder.getStringAttr(dfg::getNodeName(user) + "/" + variable);
        auto again = dfg::ReadVariableOp::create(builder, NameLoc::get(name), value.getType(), read.getHandle(), false);
        again->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(others));
        use.set(again.getValue());
      }
      // Its result is the variable's memory as well.
      if (auto identity = llvm::dyn_cast<dfg::IdentityOp>(user))
        replaceLateUses(read, variable, identity.getResult(), behind);
    }
  }

  Block &block;
  OpBuilder builder;
  dfg::NodeEdges edges;
  /// Updates, and what runs behind one. Nearly nothing that reads does.
  llvm::DenseSet<Operation *> late;
};

struct ReadReferences : impl::ReadReferencesBase<ReadReferences> {
  void runOnOperation() override {
    const llvm::StringSet<> references = getReferences(getOperation());
    if (references.empty())
      return;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      References(graph).run(references);
  }
};

} // namespace
} // namespace distc

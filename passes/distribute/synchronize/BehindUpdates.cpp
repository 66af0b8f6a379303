//===- BehindUpdates.cpp - What of a step runs behind its updates ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/BehindUpdates.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/NodeEdits.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

BehindUpdates findBehindUpdates(dfg::GraphOp graph, const strategies::StepNodes &step,
                                const llvm::DenseSet<Operation *> &reduced) {
  BehindUpdates behind;
  llvm::StringSet<> names, variables;
  for (Operation &op : graph.getBody().front()) {
    bool update = llvm::isa<dfg::UpdateInterface>(op) && !op.hasAttr(dist::kEachBatchAttr);
    if (update && step.isKnown() && !step.contains(&op))
      continue;
    bool waits = update || reduced.contains(&op), byState = update;
    for (Value operand : op.getOperands()) {
      waits |= behind.all.contains(operand.getDefiningOp());
      byState |= behind.byState.contains(operand.getDefiningOp());
      if (!dfg::isHandle(operand.getType()))
        continue;
      // What no update before it wrote is the same wherever it is read.
      auto handle = dfg::getVariableHandle(operand);
      byState |= handle ? variables.contains(handle.getVariable()) : !variables.empty();
    }
    for (llvm::StringRef control : dfg::getControlInputs(&op))
      waits |= names.contains(control);
    if (!waits && !byState)
      continue;
    behind.all.insert(&op);
    names.insert(dfg::getNodeName(&op));
    if (byState)
      behind.byState.insert(&op);
    if (update)
      variables.insert(getUpdatedVariable(&op));
  }
  return behind;
}

/// Who asks for the train op asks for what it waits for: where a node of `fetched` is the train op, a group that waits
/// for it is from now on.
static void separateTrainOp(dfg::GraphOp graph, const llvm::StringSet<> &fetched) {
  StringAttr train = graph.getTrainOpAttr();
  if (!train || !fetched.contains(dfg::getEndpointNode(train)))
    return;
  auto builder = OpBuilder::atBlockEnd(&graph.getBody().front());
  StringAttr node = dfg::getEndpointNode(train);
  StringAttr name = builder.getStringAttr(getFreeName(graph.getBody().front(), node.getValue() + "/run"));
  auto group = dfg::GroupOp::create(builder, NameLoc::get(name));
  group->setAttr(dfg::kControlAttr, builder.getArrayAttr({node}));
  graph.setTrainOpAttr(name);
}

void freeFromUpdates(dfg::GraphOp graph, const RawGradients &gradients, const strategies::StepNodes &step) {
  Block &block = graph.getBody().front();
  BehindUpdates behind = findBehindUpdates(graph, step, gradients.path);
  llvm::StringSet<> fetched;
  for (llvm::StringRef tensor : getFetchedTensors(graph))
    fetched.insert(tensor.split(':').first);
  separateTrainOp(graph, fetched);
  llvm::DenseSet<Operation *> free;
  for (Operation &op : llvm::reverse(block))
    if (behind.all.contains(&op) && !behind.byState.contains(&op) &&
        (op.hasAttr(dist::kEachBatchAttr) || fetched.contains(dfg::getNodeName(&op)) ||
         llvm::any_of(op.getResults(), [&](Value result) {
           return gradients.contains(result) ||
                  llvm::any_of(result.getUsers(), [&](Operation *user) { return free.contains(user); });
         })))
      free.insert(&op);
  if (free.empty())
    return;
  llvm::StringMap<Operation *> waiting;
  for (Operation *op : behind.all)
    waiting[dfg::getNodeName(op)] = op;
  // What follows a node that is free waits for the updates itself.
  llvm::DenseMap<Operation *, llvm::SetVector<llvm::StringRef>> inherited;
  Builder builder(graph.getContext());
  for (Operation &op : block) {
    bool isFree = free.contains(&op);
    llvm::SetVector<llvm::StringRef> kept, updates;
    bool changes = false;
    auto inherit = [&](Operation *from) {
      if (!free.contains(from))
        return;
      const auto &names = inherited[from];
      updates.insert(names.begin(), names.end());
      changes = true;
    };
    // What happens at each batch it may see, also where it waits for that by way of a group that waits for updates.
    llvm::SetVector<llvm::StringRef> awaited;
    awaited.insert_range(dfg::getControlInputs(&op));
    const size_t own = awaited.size();
    for (size_t i = 0; i < awaited.size(); ++i) {
      Operation *from = waiting.lookup(awaited[i]);
      if (!isFree || !from || free.contains(from)) {
        kept.insert(awaited[i]);
      } else {
        changes = true;
        if (i < own)
          updates.insert(awaited[i]);
        awaited.insert_range(dfg::getControlInputs(from));
      }
      inherit(from);
    }
    for (Value operand : op.getOperands())
      inherit(operand.getDefiningOp());
    if (!changes)
      continue;
    (isFree ? inherited[&op] : kept).insert(updates.begin(), updates.end());
    if (kept.empty())
      op.removeAttr(dfg::kControlAttr);
    else
      op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(kept.getArrayRef()));
  }
}

} // namespace distc

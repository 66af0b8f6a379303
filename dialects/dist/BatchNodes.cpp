//===- BatchNodes.cpp - What runs at every batch of an update ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/BatchNodes.h"

#include "dialects/dfg/ShapeContext.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

/// Whether `update` gives the next key of random numbers: integers whose bits are mixed, and of which, but for the key
/// itself, gradients and fetches alone are made. Each batch has numbers of its own, as the rows of a larger one would.
static bool isOfRandomKey(Operation *update, Block &block) {
  auto written = llvm::cast<dfg::UpdateInterface>(update).getWrittenOperands();
  if (written.empty())
    return false;
  dfg::VarHandleOp handle = dfg::getVariableHandle(update->getOperand(written.front()));
  if (!handle)
    return false;
  SmallVector<Operation *> waiting;
  for (auto read : block.getOps<dfg::ReadVariableOp>())
    if (dfg::VarHandleOp of = dfg::getVariableHandle(read->getOperand(0));
        of && of.getVariable() == handle.getVariable() &&
        llvm::isa<IntegerType>(getElementTypeOrSelf(read->getResult(0))))
      waiting.push_back(read);
  llvm::DenseSet<Operation *> seen(waiting.begin(), waiting.end());
  bool mixesBits = false;
  while (!waiting.empty()) {
    for (Operation *user : waiting.pop_back_val()->getUsers()) {
      if (user == update || llvm::isa<dist::AccumulateOp>(user) || !seen.insert(user).second)
        continue;
      if (llvm::isa<dfg::UpdateInterface>(user))
        return false;
      mixesBits |= llvm::isa<dfg::BitwiseXorOp>(user);
      waiting.push_back(user);
    }
  }
  return mixesBits;
}

/// Whether of what `op` takes it reads sizes alone, which are those of every batch: none that data decide.
static bool readsSizes(Operation *op, const dfg::ShapeContext &shapes) {
  if (!op->hasTrait<dfg::AsksShapes>() && !llvm::isa<dfg::ZerosLikeOp, dfg::OnesLikeOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    std::optional<dfg::Dims> sizes = shapes.getShape(operand);
    return sizes && llvm::none_of(*sizes, [](const dfg::Dim &size) { return size.isBound(); });
  });
}

dist::BatchNodes dist::findBatchNodes(Block &block, llvm::function_ref<bool(Operation *)> isInStep) {
  return findBatchNodes(block, isInStep, [](Operation *op) {
    auto share = op->getAttrOfType<StringAttr>(kFeedAttr);
    return share && share.getValue() == kSharded;
  });
}

dist::BatchNodes dist::findBatchNodes(Block &block, llvm::function_ref<bool(Operation *)> isInStep,
                                      llvm::function_ref<bool(Operation *)> isBatched) {
  BatchNodes nodes;
  dfg::ShapeContext shapes;
  llvm::StringSet<> namesPerUpdate;
  auto any = [](Operation *op, const llvm::DenseSet<Operation *> &set) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return set.contains(operand.getDefiningOp()); });
  };
  for (Operation &op : block) {
    bool sees = isBatched(&op) || llvm::isa<TakeOp>(op) || op.hasAttr(kEachBatchAttr) || any(&op, nodes.seeBatch);
    bool seesSizes = any(&op, nodes.seeSizes);
    if (sees && readsSizes(&op, shapes)) {
      sees = false;
      seesSizes = true;
    }
    // What is drawn, or has been exchanged, is each batch's own.
    sees |= seesSizes && !llvm::isa<dfg::UpdateInterface>(op) && !isMemoryEffectFree(&op);
    if (sees)
      nodes.seeBatch.insert(&op);
    else if (seesSizes)
      nodes.seeSizes.insert(&op);
    bool perUpdate = llvm::isa<AccumulateOp>(op) || any(&op, nodes.runPerUpdate) ||
                     (!sees && llvm::isa<dfg::UpdateInterface>(op) && isInStep(&op) && !isOfRandomKey(&op, block));
    for (llvm::StringRef control : dfg::getControlInputs(&op))
      perUpdate |= namesPerUpdate.contains(control);
    if (!perUpdate)
      continue;
    nodes.runPerUpdate.insert(&op);
    namesPerUpdate.insert(dfg::getNodeName(&op));
  }
  return nodes;
}

} // namespace distc

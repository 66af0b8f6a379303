//===- NodeCopies.cpp - A node that runs becomes one of the graph -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/CheckedOperand.h"
#include "dialects/dfg/Generators.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/IRMapping.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

/// Whether the value follows from constants and from feeds of one element, which a run is given once.
static bool isOfScalarFeeds(Value value) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen = {value};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !(isMemoryEffectFree(op) || llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(op)))
      return false;
    auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(op) && (!type || type.getRank() != 0))
      return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        pending.push_back(operand);
  }
  return true;
}

static bool isSeeded(Operation *op) {
  return llvm::any_of(ArrayRef<StringRef>{"seed", "seed2"}, [&](StringRef name) {
    auto seed = op->getAttrOfType<IntegerAttr>(name);
    return seed && seed.getInt() != 0;
  });
}

/// Whether `op`, which is being copied, draws from the generator of all of its copies: one of a loop. TensorFlow has a
/// generator a node, which goes on from iteration to iteration.
bool StraightLine::sharesGenerator(Operation *op) const {
  return !keepsOrder && !isMemoryEffectFree(op) && op->hasTrait<dfg::DrawsNumbers>() && isSeeded(op) && isRepeated &&
         (!active || active == continuing);
}

std::string StraightLine::getGenerator(const Node &node) const {
  auto function = node.op->getParentOfType<dfg::FuncOp>();
  return outermostLoop + "/" + (function ? function.getSymName().str() + "/" : "") + dfg::getNodeName(node.op).str();
}

/// The variable that a node does nothing but read, whole or rows of it; null for others.
static Value getReadVariable(Operation *op) { return op->hasTrait<dfg::ReadsVariable>() ? op->getOperand(0) : Value(); }

LogicalResult StraightLine::checkEffects(const Node &node) {
  if (isMemoryEffectFree(node.op) || llvm::isa<dfg::GroupOp, dfg::IsInitializedOp>(node.op) || getReadVariable(node.op))
    return success();
  // Each node that draws has a generator of its own, which goes on with each run of the node.
  auto seed = node.op->getAttrOfType<IntegerAttr>("seed"), seed2 = node.op->getAttrOfType<IntegerAttr>("seed2");
  if (seed && seed2) {
    if (!isSeeded(node.op) || (!active && !isRepeated))
      return success();
    // A run's scalars are the same in each of its steps: the generator goes on in all of them, or what it gives is
    // never taken.
    if (!isRepeated && isOfScalarFeeds(active)) {
      // Sessions are fed as they are run.
      if (keepsOrder)
        emitRemark(node.op->getLoc())
            << "node '" << node.name
            << "' draws random numbers with a seed under a condition that is fed: here also in runs in which it does "
               "not hold, behind which its numbers are others than those of one device";
      return success();
    }
    if (sharesGenerator(node.op)) {
      // TensorFlow's iterations run side by side and take from the generator in any order: which numbers one gets,
      // seeds do not say. How many are taken they do.
      if (active && loopsEndedWhileDrawing.insert(outermostLoop).second)
        emitWarning(node.op->getLoc())
            << "loop '" << outermostLoop << "' draws random numbers with a seed (node '" << node.name
            << "'), and data decide when it ends: its generators go on as if it always ran as often as it can, so that "
               "behind an earlier end its numbers are others than TensorFlow's, of the same distribution";
      return success();
    }
    return fail(node)
           << "draws random numbers with a seed in a "
           << (!isRepeated ? "condition, where data decide whether its generator goes on"
               : keepsOrder
                   ? "loop, where each iteration goes on with the generator of the last, and of a node an iteration "
                     "each would begin anew"
                   : "loop, where each iteration goes on with the generator of the last, as often as data decide")
           << "; distc has no code for that: draw outside of it, without a seed, or by a stateless operation";
  }
  if (active && !llvm::isa<dfg::UpdateInterface, dfg::AssertOp>(node.op))
    return fail(node)
           << "has effects, and data decide whether it runs; distc has no code for that: only variables can be "
              "changed under a condition that depends on data";
  return success();
}

FailureOr<Data> StraightLine::copy(Node &node) {
  for (const Datum &operand : node.operands)
    if (!operand.value)
      return fail(node) << "takes an element that was never written", failure();
  if (failed(checkEffects(node)))
    return failure();
  IRMapping mapping;
  for (auto [operand, datum] : llvm::zip(node.op->getOperands(), node.operands))
    mapping.map(operand, datum.value);
  Operation *op = builder.clone(*node.op, mapping);
  op->setLoc(locate(node.name));
  std::string generator = sharesGenerator(node.op) ? getGenerator(node) : "";
  if (!generator.empty()) {
    op->setAttr(dfg::kGeneratorAttr, builder.getStringAttr(generator));
  }
  llvm::SetVector<Attribute> controls(node.controls.begin(), node.controls.end());
  if (!isMemoryEffectFree(op))
    controls.insert(node.scope.before.begin(), node.scope.before.end());
  // In the order in which they draw.
  if (!generator.empty()) {
    Attribute &last = lastDraws[generator];
    if (last)
      controls.insert(last);
    last = dfg::getNodeNameAttr(op);
  }
  if (controls.empty())
    op->removeAttr(dfg::kControlAttr);
  else
    op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  orderRead(op);
  if (failed(predicateErrors(op, node)) || failed(infer(op)))
    return failure();
  SmallVector<Attribute> &after = node.scope.replacements[dfg::getNodeName(node.op)];
  const bool hasEffects = !isMemoryEffectFree(op);
  if (hasEffects || ordered.contains(op))
    after.assign({dfg::getNodeNameAttr(op)});
  if (hasEffects && !llvm::isa<dfg::ReadVariableOp, dfg::IsInitializedOp>(op) && !op->hasTrait<dfg::DrawsNumbers>())
    effects.push_back(dfg::getNodeNameAttr(op));
  if (isWrittenOut(op))
    return failed(writeOutUpdate(op, node)) ? FailureOr<Data>() : Data();
  if (active && failed(predicateUpdate(op, node)))
    return failure();
  Data results;
  for (Value result : op->getResults()) {
    // Where nothing but edges keeps an order, who takes what is known still waits for what the node waits for.
    const bool isWaitedFor = keepsOrder && ordered.contains(op);
    Value known =
        !hasEffects && !isWaitedFor && !mayBeRows(result) && !rowVectors.contains(result) ? getKnown(result) : Value();
    if (Value chosen = chosenResults.lookup(result))
      known = chosen;
    results.push_back(known ? known : result);
  }
  // Where nothing is added to zeros, gradients of loops begin.
  if (op->hasTrait<dfg::Adds>() && op->getOperand(0).getType() == op->getOperand(1).getType() &&
      llvm::cast<TensorType>(op->getResult(0).getType()).hasRank() &&
      op->getResult(0).getType() == op->getOperand(0).getType()) {
    for (unsigned zero : {0, 1})
      if (node.controls.empty() && isZero(op->getOperand(zero)))
        results[0] = op->getOperand(1 - zero);
  }
  return results;
}

/// Whether a value is the distinct ones among others, of which there are fewer than room for them.
static bool isDistinctValues(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->hasTrait<dfg::FindsDistinct>())
      return llvm::cast<OpResult>(value).getResultNumber() == 0;
    if (!op->hasTrait<dfg::Forwards>() && !op->hasTrait<dfg::Reshapes>() && !llvm::isa<dfg::CastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

LogicalResult StraightLine::predicateErrors(Operation *op, const Node &node) {
  std::optional<dfg::CheckedOperand> checked = active ? dfg::getCheckedOperand(op) : std::nullopt;
  if (!checked)
    return success();
  OpOperand &operand = op->getOpOperand(checked->index);
  if (getKnown(operand.get()))
    return success(); // an error, if it is one, when it is compiled
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Type element = llvm::cast<TensorType>(operand.get().getType()).getElementType();
  // Rows of distinct values: none of them. What is behind the last is marked so, and must stay so.
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  const bool isDistinct = update && isDistinctValues(operand.get());
  Value harmless = element.isInteger() ? getInteger(element, isDistinct ? -1 : checked->harmless)
                                       : zerosLike(operand.get(), node.name + "/harmless");
  Value value =
      harmless ? make<dfg::SelectV2Op>(node.name + "/checked", element, active, operand.get(), harmless) : Value();
  if (!value)
    return failure();
  operand.set(value);
  return success();
}

} // namespace distc

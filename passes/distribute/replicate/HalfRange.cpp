//===- HalfRange.cpp - Values of float16 are as large as one device's -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/replicate/HalfRange.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace distc {

namespace {

class HalfRange {
public:
  HalfRange(BatchFlow &flow, BatchConversions &conversions) : flow(flow), conversions(conversions) {}

  bool run(Block &block) {
    SmallVector<Operation *> nodes;
    for (Operation &op : block)
      nodes.push_back(&op);
    for (Operation *op : nodes)
      visit(op);
    return changed;
  }

private:
  /// Two forms of a value, by the one that nodes which were not visited use.
  struct Forms {
    Value small;    // of one device's size
    Value original; // as it was; null where it is not made yet
    int power = 0;  // what makes the original of the small one
  };

  static bool isHalf(Value value) { return getElementTypeOrSelf(value.getType()).isF16(); }

  static bool canChange(Operation *op) {
    auto isHandle = [](Type type) { return dfg::isHandle(type); };
    return !llvm::isa<dfg::UpdateInterface>(op) && isMemoryEffectFree(op) &&
           llvm::none_of(op->getOperandTypes(), isHandle) && llvm::none_of(op->getResultTypes(), isHandle);
  }

  void visit(Operation *op) {
    SmallVector<Flow> before = llvm::map_to_vector(op->getResults(), [&](Value result) { return flow.get(result); });
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return forms.contains(operand); }) &&
        !(canChange(op) && takeSmall(op, before)))
      takeOriginals(op);
    if (!canChange(op))
      return;
    for (OpResult result : op->getResults())
      if (isHalf(result) && !forms.contains(result))
        enter(op, result);
  }

  bool takeSmall(Operation *op, ArrayRef<Flow> before) {
    const SmallVector<Value> given(op->getOperands());
    for (OpOperand &operand : op->getOpOperands())
      if (auto it = forms.find(operand.get()); it != forms.end())
        operand.set(it->second.small);
    bool fits = succeeded(conversions.revisit(op));
    for (auto [result, old] : llvm::zip(op->getResults(), before)) {
      const Flow &now = flow.get(result);
      const bool isSame = now.zero == old.zero && now.scale == old.scale;
      // Of what nothing is proven the operands stay what they were.
      fits &=
          now.kind == old.kind && old.kind != Flow::Local && (isSame || (now.scale && old.scale && isFloat(result)));
    }
    if (!fits) {
      op->setOperands(given);
      return false;
    }
    changed = true;
    for (auto [result, old] : llvm::zip(op->getResults(), before)) {
      const Flow now = flow.get(result);
      if (now.zero || old.zero || now.scale == old.scale)
        continue;
      const int power = *now.scale - *old.scale;
      if (isHalf(result)) {
        forms[result] = {result, Value(), power};
        continue;
      }
      // It leaves float16.
      Value original = conversions.rescaleBy(result, power);
      result.replaceAllUsesExcept(original, original.getDefiningOp());
    }
    return true;
  }

  void takeOriginals(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto it = forms.find(operand.get());
      if (it == forms.end())
        continue;
      if (!it->second.original)
        it->second.original = conversions.rescaleBy(it->second.small, it->second.power);
      operand.set(it->second.original);
    }
    (void)conversions.revisit(op);
  }

  /// What the batch's size was divided out of before, or here.
  void enter(Operation *op, OpResult result) {
    const Flow at = flow.get(result);
    if (at.kind == Flow::Local || at.zero || !at.scale || *at.scale >= 0)
      return;
    // Before it is rounded, where it is wider.
    if (auto cast = llvm::dyn_cast<dfg::CastOp>(op); cast && isFloat(op->getOperand(0))) {
      Value wide = op->getOperand(0), divided = conversions.rescale(wide);
      if (!divided)
        return;
      op->setOperand(0, divided);
      if (succeeded(conversions.revisit(op)) && flow.get(result).kind == at.kind && flow.get(result).scale == 0) {
        forms[result] = {result, Value(), -*at.scale};
        changed = true;
        return;
      }
      op->setOperand(0, wide);
      (void)conversions.revisit(op);
      return;
    }
    if (Value small = conversions.rescale(result)) {
      forms[result] = {small, result, -*at.scale};
      changed = true;
    }
  }

  static bool isFloat(Value value) { return llvm::isa<FloatType>(getElementTypeOrSelf(value.getType())); }

  BatchFlow &flow;
  BatchConversions &conversions;
  llvm::DenseMap<Value, Forms> forms;
  bool changed = false;
};

} // namespace

LogicalResult keepHalvesInRange(dfg::GraphOp graph, int64_t replicas, bool &changed) {
  Block &block = graph.getBody().front();
  auto isHalf = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  if (llvm::none_of(block, [&](Operation &op) { return llvm::any_of(op.getResultTypes(), isHalf); }))
    return success();
  FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
  if (failed(flow))
    return failure();
  if (flow->getFixedBatch())
    return success();
  BatchConversions conversions(graph, *flow, replicas);
  changed |= HalfRange(*flow, conversions).run(block);
  conversions.eraseUnused();
  return success();
}

} // namespace distc

//===- SplitDraws.cpp - Parts of random tensors are drawn by themselves -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/entries/SplitDraws.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/Generators.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc::lower {
namespace {

RankedTensorType typeOf(Value value) { return llvm::dyn_cast<RankedTensorType>(value.getType()); }

bool isZero(Value value) {
  auto constant = value.getDefiningOp<dfg::ConstOp>();
  auto elements = constant ? llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  return elements && elements.getNumElements() == 1 && (*elements.begin()).isZero();
}

/// A split, and what the value that it parts is computed of.
class SplitDraw {
public:
  explicit SplitDraw(Operation *split) : split(split), builder(split) {}

  bool find() {
    const bool isSplitV = llvm::isa<dfg::SplitVOp>(split);
    whole = split->getOperand(isSplitV ? 0 : 1);
    if (!isZero(split->getOperand(isSplitV ? 2 : 0)) || split->use_empty())
      return false;
    if (!typeOf(whole) || !typeOf(whole).hasStaticShape() || typeOf(whole).getRank() == 0)
      return false;
    for (Value part : split->getResults())
      if (part.use_empty() || !typeOf(part) || !typeOf(part).hasStaticShape())
        return false;
    return collect(whole) && draws && llvm::all_of(nodes, [&](Operation *op) {
             return llvm::all_of(op->getUsers(),
                                 [&](Operation *user) { return user == split || nodes.contains(user); });
           });
  }

  void apply() {
    const int64_t row = typeOf(whole).getNumElements() / std::max<int64_t>(typeOf(whole).getDimSize(0), 1);
    int64_t first = 0;
    for (Value part : split->getResults()) {
      llvm::DenseMap<Value, Value> made;
      for (Operation *op : inOrder()) {
        builder.setInsertionPoint(op->hasTrait<dfg::DrawsNumbers>() ? op : split);
        Operation *clone = builder.clone(*op);
        for (OpOperand &operand : clone->getOpOperands())
          if (Value own = made.lookup(operand.get()))
            operand.set(own);
        auto type = typeOf(op->getResult(0));
        SmallVector<int64_t> shape(type.getShape());
        shape.front() = typeOf(part).getDimSize(0);
        clone->getResult(0).setType(type.clone(shape));
        made[op->getResult(0)] = clone->getResult(0);
        if (op->hasTrait<dfg::DrawsNumbers>())
          describe(clone, op, first * row);
      }
      part.replaceAllUsesWith(made.lookup(whole));
      first += typeOf(part).getDimSize(0);
    }
    split->erase();
    const auto drawn = inOrder(); // a vector of its own: it must outlive the range
    for (Operation *op : llvm::reverse(drawn))
      op->erase();
  }

private:
  /// What `value` is made of. Nothing else may need the same numbers, which would be drawn again.
  bool collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || nodes.contains(op))
      return op != nullptr;
    if (op->getNumResults() != 1 || op->hasAttr(dist::kSeedAttr) || op->hasAttr(dfg::kReservedAttr) ||
        op->hasAttr(dfg::kGeneratorAttr) || typeOf(value) == RankedTensorType() ||
        typeOf(value).getShape() != typeOf(whole).getShape())
      return false;
    if (op->hasTrait<dfg::DrawsNumbers>()) {
      if (!llvm::isa<dfg::RandomUniformOp, dfg::RandomStandardNormalOp, dfg::TruncatedNormalOp,
                     dfg::StatelessRandomUniformOp, dfg::StatelessRandomNormalOp, dfg::StatelessTruncatedNormalOp,
                     dfg::StatelessRandomUniformV2Op, dfg::StatelessRandomNormalV2Op,
                     dfg::StatelessTruncatedNormalV2Op>(op))
        return false;
      draws = true;
    } else {
      if (!llvm::isa<dfg::ScalarInterface>(op))
        return false;
      for (Value operand : op->getOperands())
        if (!typeOf(operand) || !typeOf(operand).hasStaticShape() ||
            (typeOf(operand).getRank() != 0 && !collect(operand)))
          return false;
    }
    nodes.insert(op);
    return true;
  }

  SmallVector<Operation *> inOrder() const {
    SmallVector<Operation *> sorted(nodes.begin(), nodes.end());
    llvm::sort(sorted, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    return sorted;
  }

  void describe(Operation *part, Operation *drawn, int64_t first) {
    part->setAttr(kDrawnWholeAttr, builder.getI64IntegerAttr(typeOf(drawn->getResult(0)).getNumElements()));
    part->setAttr(kDrawnFirstAttr, builder.getI64IntegerAttr(first));
    // All parts are of one run of the node's generator.
    if (!isMemoryEffectFree(drawn))
      part->setAttr(dfg::kGeneratorAttr, builder.getStringAttr(dfg::getNodeName(drawn) + "#parts"));
  }

  Operation *split;
  OpBuilder builder;
  Value whole;
  llvm::SetVector<Operation *> nodes;
  bool draws = false;
};

} // namespace

void splitDraws(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (llvm::isa<dfg::SplitOp, dfg::SplitVOp>(op))
      if (SplitDraw split(&op); split.find())
        split.apply();
}

} // namespace distc::lower

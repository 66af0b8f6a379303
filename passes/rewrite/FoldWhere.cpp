//===- FoldWhere.cpp - What a constant chooses is a constant --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ShapeContext.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "passes/graph/Passes.h"
#include "passes/rewrite/Passes.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_FOLDWHERE
#include "passes/rewrite/Passes.h.inc"

namespace {

bool isWhere(Operation &op) {
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  return opaque && opaque.getOp() == "Where" && op.getNumOperands() == 1;
}

/// The coordinates of the elements that are not 0, in their order.
DenseElementsAttr getCoordinates(ArrayRef<int64_t> shape, ArrayRef<int64_t> elements, MLIRContext *context) {
  SmallVector<int64_t> coordinates;
  int64_t count = 0;
  for (auto [number, element] : llvm::enumerate(elements)) {
    if (!element)
      continue;
    ++count;
    SmallVector<int64_t> at;
    int64_t rest = static_cast<int64_t>(number);
    for (int64_t size : llvm::reverse(shape)) {
      at.push_back(rest % size);
      rest /= size;
    }
    coordinates.append(at.rbegin(), at.rend());
  }
  auto type = RankedTensorType::get({count, static_cast<int64_t>(shape.size())}, IntegerType::get(context, 64));
  return DenseElementsAttr::get(type, ArrayRef(coordinates));
}

struct FoldWhere : impl::FoldWhereBase<FoldWhere> {
  void runOnOperation() override {
    bool folded = false;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (llvm::any_of(graph.getBody().front(), isWhere)) {
        FailureOr<bool> some = fold(graph.getBody().front());
        if (failed(some))
          return signalPassFailure();
        folded |= *some;
      }
    if (!folded)
      return;
    // What follows from the number of what is chosen was not known before.
    OpPassManager infer(ModuleOp::getOperationName());
    infer.addPass(createInferShapes());
    if (failed(runPipeline(infer, getOperation())))
      signalPassFailure();
  }

  /// Whether any was known.
  FailureOr<bool> fold(Block &block) {
    dfg::ShapeContext shapes;
    bool folded = false;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto type = isWhere(op) ? llvm::dyn_cast<RankedTensorType>(op.getOperand(0).getType()) : RankedTensorType();
      std::optional<SmallVector<int64_t>> known;
      if (type && type.hasStaticShape() && type.getRank() > 0 && type.getElementType().isInteger())
        known = shapes.getConstants(op.getOperand(0));
      if (known) {
        OpBuilder builder(&op);
        DenseElementsAttr coordinates = getCoordinates(type.getShape(), *known, &getContext());
        auto constant = dfg::ConstOp::create(builder, op.getLoc(), coordinates.getType(), coordinates);
        if (auto control = op.getDiscardableAttr(dfg::kControlAttr))
          constant->setAttr(dfg::kControlAttr, control);
        if (failed(constant.inferShapes(shapes)))
          return failure();
        op.getResult(0).replaceAllUsesWith(constant.getResult());
        op.erase();
        folded = true;
      } else if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes))) {
        return failure();
      }
    }
    return folded;
  }
};

} // namespace
} // namespace distc::rewrite

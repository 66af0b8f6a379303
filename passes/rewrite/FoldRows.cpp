//===- FoldRows.cpp - All rows of a tensor, in their order, are the tensor -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ShapeContext.h"
#include "passes/rewrite/Passes.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_FOLDROWS
#include "passes/rewrite/Passes.h.inc"

namespace {

bool isNumber(Value value, int64_t number, const dfg::ShapeContext &shapes) {
  return shapes.getConstant(value) == number;
}

/// The only element of `value`, a number or a size.
dfg::Dim getSize(Value value, const dfg::ShapeContext &shapes) {
  std::optional<dfg::Dims> elements = shapes.getElements(value);
  return elements && elements->size() == 1 ? elements->front() : dfg::Dim();
}

/// Whether `value` is 0, 1, ... `count` - 1.
bool areRowNumbers(Value value, dfg::Dim count, const dfg::ShapeContext &shapes) {
  Operation *op = value.getDefiningOp();
  if (auto range = llvm::dyn_cast_or_null<dfg::RangeOp>(op))
    return isNumber(range->getOperand(0), 0, shapes) && isNumber(range->getOperand(2), 1, shapes) &&
           getSize(range->getOperand(1), shapes) == count;
  // What vectorized_map makes of the loop's counter: of one row, row 0 is taken whatever the counter says.
  if (llvm::isa_and_nonnull<dfg::SelectV2Op>(op)) {
    auto several = op->getOperand(0).getDefiningOp<dfg::GreaterOp>();
    return several && getSize(several->getOperand(0), shapes) == count && isNumber(several->getOperand(1), 1, shapes) &&
           isNumber(op->getOperand(2), 0, shapes) && areRowNumbers(op->getOperand(1), count, shapes);
  }
  return false;
}

struct FoldRows : impl::FoldRowsBase<FoldRows> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(fold(graph.getBody().front())))
        return signalPassFailure();
  }

  LogicalResult fold(Block &block) {
    if (block.getOps<dfg::GatherV2Op>().empty())
      return success();
    dfg::ShapeContext shapes;
    for (Operation &op : block) {
      if (auto gather = llvm::dyn_cast<dfg::GatherV2Op>(op); gather && takesAllRows(gather, shapes))
        gather->getResult(0).replaceAllUsesWith(gather->getOperand(0));
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
    }
    return success();
  }

  static bool takesAllRows(dfg::GatherV2Op gather, const dfg::ShapeContext &shapes) {
    // A handle's rows are a read, whose gradient is one of rows.
    if (!llvm::isa<TensorType>(gather->getOperand(0).getType()) || gather.getBatchDims() != 0 ||
        !isNumber(gather->getOperand(2), 0, shapes))
      return false;
    std::optional<dfg::Dims> sizes = shapes.getShape(gather->getOperand(0));
    return sizes && !sizes->empty() && sizes->front().isKnown() && !sizes->front().isBound() &&
           areRowNumbers(gather->getOperand(1), sizes->front(), shapes);
  }
};

} // namespace
} // namespace distc::rewrite

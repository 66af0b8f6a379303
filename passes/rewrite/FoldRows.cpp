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

/// The mask by which `rows` are chosen, one for each element of it, as `tf.boolean_mask` does; null where they are not.
Value getMask(Value rows, const dfg::ShapeContext &shapes) {
  auto gather = rows.getDefiningOp<dfg::GatherV2Op>();
  if (!gather)
    return {};
  Operation *op = gather->getOperand(1).getDefiningOp();
  while (llvm::isa_and_nonnull<dfg::SqueezeOp, dfg::ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  auto where = llvm::dyn_cast_or_null<dfg::OpaqueOp>(op);
  if (!where || where.getOp() != "Where")
    return {};
  // Of a mask of several axes there are as many numbers a place.
  Value mask = where->getOperand(0);
  if (auto sizes = shapes.getShape(mask); !sizes || sizes->size() != 1)
    return {};
  while (auto reshape = mask.getDefiningOp<dfg::ReshapeOp>())
    mask = reshape->getOperand(0);
  return mask;
}

/// What `reshape` stacks: vectors that one mask chooses, which are joined and then made rows of a matrix again.
OperandRange getStacked(dfg::ReshapeOp reshape, const dfg::ShapeContext &shapes) {
  OperandRange none = reshape->getOperands().take_front(0);
  auto joined = reshape->getOperand(0).getDefiningOp<dfg::ConcatV2Op>();
  auto sizes = shapes.getElements(reshape->getOperand(1));
  if (!joined || !sizes || sizes->size() != 2)
    return none;
  OperandRange vectors = joined->getOperands().drop_back();
  if (!(sizes->front() == dfg::Dim(static_cast<int64_t>(vectors.size()))) || !(sizes->back() == dfg::Dim(-1)))
    return none;
  Value mask = getMask(vectors.front(), shapes);
  const bool isStacked = mask && llvm::all_of(vectors, [&](Value vector) {
                           auto shape = shapes.getShape(vector);
                           return shape && shape->size() == 1 && getMask(vector, shapes) == mask;
                         });
  return isStacked ? vectors : none;
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
      if (auto reshape = llvm::dyn_cast<dfg::ReshapeOp>(op))
        if (OperandRange vectors = getStacked(reshape, shapes); !vectors.empty())
          stack(reshape, vectors);
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
    }
    return success();
  }

  static void stack(dfg::ReshapeOp reshape, ValueRange vectors) {
    OpBuilder builder(reshape);
    auto name = builder.getStringAttr(dfg::getNodeName(reshape) + "/stacked");
    OperationState state(NameLoc::get(name), dfg::PackOp::getOperationName(), vectors, reshape->getResult(0).getType());
    state.addAttribute("axis", builder.getI64IntegerAttr(0));
    reshape->getResult(0).replaceAllUsesWith(builder.create(state)->getResult(0));
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

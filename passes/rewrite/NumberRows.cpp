//===- NumberRows.cpp - Rows by coordinates of one number are rows by their numbers ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/rewrite/Passes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_NUMBERROWS
#include "passes/rewrite/Passes.h.inc"

namespace {

/// The update by row numbers that does what `op` does by coordinates; empty where there is none.
StringRef getNumbered(Operation &op) {
  return llvm::StringSwitch<StringRef>(op.getName().getStringRef())
      .Case(dfg::ScatterNdUpdateOp::getOperationName(), dfg::ScatterUpdateOp::getOperationName())
      .Case(dfg::ScatterNdAddOp::getOperationName(), dfg::ScatterAddOp::getOperationName())
      .Case(dfg::ScatterNdSubOp::getOperationName(), dfg::ScatterSubOp::getOperationName())
      .Case(dfg::ScatterNdMinOp::getOperationName(), dfg::ScatterMinOp::getOperationName())
      .Case(dfg::ScatterNdMaxOp::getOperationName(), dfg::ScatterMaxOp::getOperationName())
      .Default("");
}

struct NumberRows : impl::NumberRowsBase<NumberRows> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      for (Operation &op : llvm::make_early_inc_range(graph.getBody().front()))
        if (StringRef kind = getNumbered(op); !kind.empty())
          number(op, kind);
  }

  void number(Operation &op, StringRef kind) {
    Value coordinates = op.getOperand(1);
    auto type = llvm::dyn_cast<RankedTensorType>(coordinates.getType());
    if (!type || type.getRank() != 2 || type.getDimSize(1) != 1)
      return;
    OpBuilder builder(&op);
    auto locate = [&](StringRef suffix) {
      return NameLoc::get(builder.getStringAttr(dfg::getNodeName(&op) + "/" + suffix));
    };
    auto vector = RankedTensorType::get({1}, builder.getI32Type());
    auto all = dfg::ConstOp::create(builder, locate("all"), vector,
                                    DenseElementsAttr::get(vector, builder.getI32IntegerAttr(-1)));
    auto rowsType = RankedTensorType::get({type.getDimSize(0)}, type.getElementType());
    auto rows = dfg::ReshapeOp::create(builder, locate("rows"), rowsType, coordinates, all.getResult());
    OperationState state(op.getLoc(), kind, {op.getOperand(0), rows.getResult(), op.getOperand(2)},
                         op.getResultTypes());
    if (auto control = op.getDiscardableAttr(dfg::kControlAttr))
      state.addAttribute(dfg::kControlAttr, control);
    op.replaceAllUsesWith(builder.create(state)->getResults());
    op.erase();
  }
};

} // namespace
} // namespace distc::rewrite

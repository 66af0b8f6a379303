//===- GatheredVariables.cpp - Rows of variables -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GatheredVariables.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc::dfg {

void readGatheredVariables(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto rows = llvm::dyn_cast<ResourceGatherOp>(op);
    if (!rows && !llvm::isa<ResourceGatherNdOp>(op))
      continue;
    auto handle = llvm::dyn_cast<RefType>(op.getOperand(0).getType());
    auto indices = llvm::dyn_cast<RankedTensorType>(op.getOperand(1).getType());
    if (!handle || !indices)
      continue;
    OpBuilder builder(&op);
    auto getLocation = [&](llvm::StringRef part) {
      return NameLoc::get(builder.getStringAttr(getNodeName(&op) + "/" + part));
    };
    auto read = ReadVariableOp::create(builder, getLocation("read"), handle.getValueType(), op.getOperand(0));
    OperationState state(op.getLoc(), rows ? GatherV2Op::getOperationName() : GatherNdOp::getOperationName());
    state.addOperands({read.getValue(), op.getOperand(1)});
    state.addTypes(op.getResultTypes());
    if (Attribute control = op.getAttr(kControlAttr)) {
      read->setAttr(kControlAttr, control);
      state.addAttribute(kControlAttr, control);
    }
    if (rows) {
      // The axis is the first behind those that variable and indices share.
      int64_t lead = rows.getBatchDimsAttr().getInt();
      if (lead < 0)
        lead += indices.getRank();
      auto type = RankedTensorType::get({}, builder.getI32Type());
      auto axis = DenseElementsAttr::get(type, builder.getI32IntegerAttr(static_cast<int32_t>(lead)));
      state.addOperands(ConstOp::create(builder, getLocation("axis"), type, axis).getResult());
      state.addAttribute("batch_dims", builder.getI64IntegerAttr(lead));
    }
    op.replaceAllUsesWith(builder.create(state));
    op.erase();
  }
}

} // namespace distc::dfg

//===- Gathers.h - What a gather takes ------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_GATHERS_H
#define DISTC_DIALECTS_DFG_GATHERS_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// Whether `op` takes rows of its first operand, a tensor or a variable, by its second: along the first axis, which is
/// known, and the same rows' numbers for all of it.
inline bool takesRows(mlir::Operation *op) {
  if (auto gather = llvm::dyn_cast<ResourceGatherOp>(op))
    return gather.getBatchDims() == 0;
  auto gather = llvm::dyn_cast<GatherV2Op>(op);
  if (!gather)
    return llvm::isa<GatherOp>(op);
  auto axis = gather.getAxis().getDefiningOp<ConstOp>();
  auto number = axis ? llvm::dyn_cast<mlir::DenseIntElementsAttr>(axis.getValue()) : mlir::DenseIntElementsAttr();
  return gather.getBatchDims() == 0 && number && number.size() == 1 && (*number.begin()).isZero();
}

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_GATHERS_H

//===- WholePlan.h - Whether a module is a plan that can be told of --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_WHOLEPLAN_H
#define DISTC_PASSES_LOWER_PLAN_WHOLEPLAN_H

#include "mlir/IR/BuiltinOps.h"

namespace distc {

/// The variables that an attribute names, in arrays of arrays as well.
void collectVariables(mlir::Attribute attribute, llvm::SmallVectorImpl<llvm::StringRef> &names);

/// Fails, with a diagnostic, where a module lacks what programs say of themselves, or names variables or tasks that it
/// does not have: a file that is given may say anything.
llvm::LogicalResult checkWholePlan(mlir::ModuleOp module);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_WHOLEPLAN_H

//===- PlanReport.h - The plan as a JSON document ------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_PLANREPORT_H
#define DISTC_PASSES_LOWER_PLAN_PLANREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace distc {

/// Writes what a plan says (docs/plan-page.md) as attributes of the object that is open in `json`: the program, its
/// tasks, variables and entries. Fails, with a diagnostic, where the module is no whole plan.
llvm::LogicalResult writePlanReport(mlir::ModuleOp module, llvm::json::OStream &json);

/// Writes an object or an array on a line of its own, so that documents are read by lines as well.
void writeRow(llvm::json::OStream &json, llvm::function_ref<void(llvm::json::OStream &)> write);

/// A name as JSON may hold it: valid UTF-8.
std::string toJsonText(llvm::StringRef text);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_PLANREPORT_H

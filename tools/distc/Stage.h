//===- Stage.h - Going on from a stage that was printed -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_STAGE_H
#define DISTC_TOOLS_DISTC_STAGE_H

#include "mlir/IR/BuiltinOps.h"
#include "tools/distc/Options.h"

namespace distc {

/// Where a module is on its way: a graph, a distributed graph (--emit=dist), a plan (--emit=drt).
enum class Stage { Graph, Distributed, Plan };

/// Whether a file holds IR (.mlir text, or bytecode of any name) and not a TensorFlow graph.
bool isIr(llvm::StringRef path);

/// Keeps in a module that is printed what the command line said of the stages behind it, so that they need not be told
/// again. `severalTasks`: of a plan, which has no topology any more.
void noteCommand(mlir::ModuleOp module, const CompileOptions &options, bool severalTasks);

/// The stage of a module that was read, and in `options` what noteCommand kept, unless the command line says it anew.
/// Fails, with a diagnostic, where the command line asks for what earlier stages have settled.
llvm::FailureOr<Stage> resume(mlir::ModuleOp module, CompileOptions &options);

/// The plan for tasks that share their memory, which stands in `module` beside the other plan where a program has both.
/// It is taken out; null where there is none. `module` is a plan that was read; fails, with a diagnostic, where what
/// stands there is no such plan.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> takeJointPlan(mlir::ModuleOp module);
void addJointPlan(mlir::ModuleOp module, mlir::ModuleOp joint);

/// Whether the plan was made for more than one task.
bool hasSeveralTasks(mlir::ModuleOp module);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_STAGE_H

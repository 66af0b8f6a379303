//===- Pipeline.h - The stages of compilation, in order ---------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_PIPELINE_H
#define DISTC_TOOLS_DISTC_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "passes/lower/program/Target.h"
#include "tools/distc/Options.h"
#include "tools/distc/Stage.h"

namespace distc {

/// dfg, as imported -> dfg without calls, with shapes. `exports`: for TensorFlow, whose sessions save by nodes.
void addGraphStage(mlir::OpPassManager &manager, bool exports = false);
/// dfg -> dfg and dist: topology and synchronization.
void addDistributeStage(mlir::OpPassManager &manager, const CompileOptions &options);
/// What stands in a module that was read, and that somebody may have changed, is proven again.
void addVerifyStage(mlir::OpPassManager &manager, Stage stage, const Target &target);
/// -> drt: entries at the replica's batch, kernels, places in memory.
/// `replicaBatch`: rows of a replica's share; 0 where no feed is batched. `joint`: the tasks share their memory.
void addLowerStage(mlir::OpPassManager &manager, const CompileOptions &options, int64_t replicaBatch,
                   bool joint = false);
/// -> kernels of a grid's threads, and their images, on a target with devices: PTX alone where it is what to emit.
void addImagesStage(mlir::OpPassManager &manager, const CompileOptions &options, const Target &target);
/// -> LLVM's dialect: kernels, entries, the program's tables.
void addLLVMStage(mlir::OpPassManager &manager);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_PIPELINE_H

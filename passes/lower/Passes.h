//===- Passes.h - From the distributed graph to the runtime's plan and objects -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PASSES_H
#define DISTC_PASSES_LOWER_PASSES_H

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace distc {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

struct LowerToRuntimeOptions : public mlir::PassPipelineOptions<LowerToRuntimeOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("As distc's --target"), llvm::cl::init("cpu")};
  Option<int64_t> replicaBatch{*this, "replica-batch",
                               llvm::cl::desc("Rows of a replica's share; 0: no feed is batched"), llvm::cl::init(0)};
  ListOption<std::string> feeds{*this, "feeds", llvm::cl::desc("NAME=SHAPE of placeholders")};
  Option<std::string> graph{*this, "graph", llvm::cl::desc("File of the graph, for messages"), llvm::cl::init("")};
  Option<std::string> strategy{*this, "strategy", llvm::cl::desc("Name of the strategy, for the log"),
                               llvm::cl::init("")};
  Option<int64_t> cores{*this, "cores", llvm::cl::desc("Cores that compute a replica's step; 0: not said"),
                        llvm::cl::init(0)};
  Option<bool> asserts{*this, "asserts",
                       llvm::cl::desc("Check indices and labels when the program runs (processors only)"),
                       llvm::cl::init(true)};
  Option<bool> joint{*this, "joint", llvm::cl::desc("The tasks, of one replica each, share their memory"),
                     llvm::cl::init(false)};
  Option<int64_t> maxMemory{
      *this, "max-memory",
      llvm::cl::desc("Bytes of a task's variables and arenas, for which values are computed again; 0: any"),
      llvm::cl::init(0)};
  Option<std::string> precision{*this, "precision",
                                llvm::cl::desc("Of matmuls: fp32, bf16 or fp16, on devices tf32 too"),
                                llvm::cl::init("fp32")};
};

/// Refuses a finished plan whose accesses could meet in the wrong order: on a CPU's threads, or on a device's streams.
void addPlanVerifiers(mlir::OpPassManager &manager, bool device);

/// The stage of lowering: a distributed graph becomes the plan of its task (dialect drt), with kernels on buffers and
/// places in memory. A target that there is not ends the program.
void buildLowerToRuntimePipeline(mlir::OpPassManager &manager, const LowerToRuntimeOptions &options);

/// Kernels (`drt.kernel`) from linalg on buffers to LLVM functions.
void buildLowerKernelsPipeline(mlir::OpPassManager &pm);

/// Kernels of a grid's threads (`gpu.func` in `gpu.module @kernels`, with `drt.grid` and `drt.block`) to NVVM, one bare
/// pointer a buffer.
void buildLowerGpuKernelsPipeline(mlir::OpPassManager &pm);

/// Registers the passes and the pipelines `lower-to-runtime`, `lower-kernels` and `lower-gpu-kernels`.
void registerLowering();

} // namespace distc

#endif // DISTC_PASSES_LOWER_PASSES_H

//===- Pipeline.cpp - The stages of compilation, in order -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"

namespace distc {

void addGraphStage(mlir::OpPassManager &manager) {
  // The batch's flow and the gradients are seen through calls only when they are inlined.
  manager.addPass(createInlineCalls());
  manager.addPass(createInferShapes());
}

void addDistributeStage(mlir::OpPassManager &manager, const CompileOptions &options) {
  // Before the batch's flow is asked about nodes that have no semantics.
  manager.addPass(createCheckEndpoints({/*code=*/options.emit != "dist" && options.emit != "graphdef"}));
  DistributeOptions distribute;
  distribute.strategy = options.strategy;
  distribute.resources = options.resources;
  distribute.replicas = options.replicas;
  distribute.servers = options.servers;
  distribute.oneProcessPerReplica = options.oneProcessPerReplica;
  // Sessions of workers run the servers' nodes: an exported graph has them all.
  distribute.roles = options.emit != "graphdef";
  buildDistributePipeline(manager, distribute);
}

// Of the passes on a plan, those that a CPU's replicas gain from: they share memory, and every operation has code.
static void addCPUPasses(mlir::OpPassManager &manager, const LowerOptions &lower) {
  mlir::OpPassManager &functions = manager.nest<mlir::func::FuncOp>();
  // Replicas of one task share memory: a gradient's product is then computed once. Between tasks it must be whole.
  if (lower.tasks == 1 && lower.taskReplicas > 1) {
    JoinContractionsOptions join;
    join.replicas = lower.taskReplicas;
    functions.addPass(createJoinContractions(join));
  }
  functions.addPass(createFuseEpilogues());
  functions.addPass(createFuseElementwise());
  functions.addPass(mlir::createCSEPass());
  manager.addPass(createOutlineKernels());
  manager.addPass(createPlanMemory());
}

static void addDevicePasses(mlir::OpPassManager &manager) {
  manager.addPass(createAccumulateInVariables());
  manager.addNestedPass<mlir::func::FuncOp>(createPrepareForGpu());
  manager.addPass(createRandomKernels());
  mlir::OpPassManager &entries = manager.nest<mlir::func::FuncOp>();
  entries.addPass(createCheckForGpu());
  FuseEpiloguesOptions epilogues;
  epilogues.activations = {"relu"};
  entries.addPass(createFuseEpilogues(epilogues));
  entries.addPass(createFuseElementwise());
  entries.addPass(mlir::createCSEPass());
  manager.addPass(createOutlineKernels());
  manager.addNestedPass<mlir::func::FuncOp>(createReadInPlace());
  manager.addPass(createPlanMemory({/*device=*/true}));
  // The tables of its kernels say where tensors and variables lie.
  manager.addPass(createGroupUpdates());
}

void addLowerStage(mlir::OpPassManager &manager, const CompileOptions &options, const LowerOptions &lower, const Target &target) {
  manager.addPass(createExtractEntries());
  // From here on every size is a number.
  InferShapesOptions shapes;
  shapes.batch = lower.replicaBatch;
  shapes.feeds.assign(options.feeds.begin(), options.feeds.end());
  manager.addPass(createInferShapes(shapes));
  manager.addPass(createFold());
  DescribeProgramOptions program;
  program.graph = options.graph;
  program.strategy = options.strategy;
  program.target = options.target;
  program.globalBatch = lower.globalBatch;
  manager.addPass(createDescribeProgram(program));
  // Within one task there is nothing to scatter or to gather, where its replicas share memory.
  if (lower.tasks == 1 && !target.isDevice())
    manager.addPass(createMergeShares());
  manager.addPass(createConvertDfgToDrt());
  if (target.isDevice())
    addDevicePasses(manager);
  else
    addCPUPasses(manager, lower);
}

void addImagesStage(mlir::OpPassManager &manager, const CompileOptions &options, const Target &target) {
  manager.addPass(createScheduleForGpu());
  buildLowerGpuKernelsPipeline(manager);
  MakeImagesOptions images;
  images.target = target.name;
  images.ptxOnly = options.emit == "ptx";
  images.verbose = options.verbose;
  manager.addPass(createMakeImages(images));
}

void addLLVMStage(mlir::OpPassManager &manager, const Target &target) {
  if (!target.isDevice())
    buildLowerKernelsPipeline(manager);
  manager.addPass(createConvertDrtToLLVM());
}

} // namespace distc

//===- Pipeline.cpp - The stages of compilation, in order -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/Pipeline.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/rewrite/Passes.h"
#include "passes/rows/Passes.h"

namespace distc {

void addGraphStage(mlir::OpPassManager &manager, bool exports) {
  // While a saver of functions is two calls.
  if (exports)
    manager.addPass(createDistMakeSaver());
  // The batch's flow and the gradients are seen through calls only when they are inlined.
  manager.addPass(createInlineCalls());
  // The edges are still the user's.
  manager.addPass(createRemarkRaces());
  manager.addPass(createInferShapes());
  if (exports)
    manager.addPass(rewrite::createDivideConvolutions());
}

void addDistributeStage(mlir::OpPassManager &manager, const CompileOptions &options) {
  // The batch's flow need not look through control flow: what an executable is made of has none.
  if (options.emit != "graphdef") {
    manager.addPass(createOrderInitialization());
    // An exported graph reads its files by itself.
    manager.addPass(createFeedInputs());
    manager.addPass(rewrite::createSpellOutOperations());
    manager.addPass(rewrite::createReadTables());
    manager.addPass(rewrite::createHashIntegers());
    manager.addPass(createReadReferences());
    manager.addPass(createRaiseLoops());
    ExpandControlFlowOptions control;
    control.feeds.assign(options.feeds.begin(), options.feeds.end());
    control.maxIterations = options.maxIterations;
    control.batch = options.batch;
    manager.addPass(createExpandControlFlow(control));
    manager.addPass(rewrite::createWidenUnsigned());
    manager.addPass(rewrite::createSplitComplex());
    manager.addPass(rewrite::createFoldWhere());
    manager.addPass(rewrite::createFoldDistinct());
    manager.addPass(rewrite::createFoldRows());
    manager.addPass(rewrite::createGatherSlices());
    manager.addPass(rewrite::createNumberRows());
  } else if (options.replicas > 1 || options.servers > 0 || !options.resources.empty()) {
    manager.addPass(createOrderInitialization());
    // Nor has a graph that several replicas run, where it can do without.
    manager.addPass(rewrite::createSpellOutOperations({/*keepsOrder=*/true}));
    // Another task gets a copy of what is read, not the variable's memory.
    manager.addPass(createReadReferences());
    WriteOutControlFlowOptions control;
    control.feeds.assign(options.feeds.begin(), options.feeds.end());
    manager.addPass(createWriteOutControlFlow(control));
    manager.addPass(rewrite::createFoldWhere());
    manager.addPass(rewrite::createFoldDistinct());
    manager.addPass(rewrite::createFoldRows());
    manager.addPass(rewrite::createNumberRows());
  }
  const bool isExecutable = options.emit != "dist" && options.emit != "graphdef";
  // Before the batch's flow, which knows simple operations, and sizes that follow from the batch's. A graph that is
  // exported keeps its own.
  if (options.emit != "graphdef") {
    manager.addPass(createDecompose());
    // Behind it, which asks for sizes: of rows that are chosen nothing says how many they are.
    if (options.padsBatch) {
      rows::PadBatchOptions pad;
      pad.feeds.assign(options.feeds.begin(), options.feeds.end());
      manager.addPass(rows::createPadBatch(pad));
    }
    manager.addPass(rows::createMaskRows());
  }
  // Before the batch's flow is asked about nodes that have no semantics.
  manager.addPass(createCheckEndpoints({/*code=*/isExecutable}));
  DistributeOptions distribute;
  distribute.strategy = options.strategy;
  distribute.resources = options.resources;
  distribute.replicas = options.replicas;
  distribute.servers = options.servers;
  distribute.oneProcessPerReplica = options.oneProcessPerReplica;
  // TensorFlow has no such operation.
  distribute.formUpdates = options.emit != "graphdef";
  distribute.batch = options.batch;
  // What is looked at is what an executable is made of, or what it would be if all strategies had executables.
  distribute.colocateServers = options.emit != "graphdef";
  distribute.whereSupported = !isExecutable;
  // Sessions of workers run the servers' nodes: an exported graph has them all.
  distribute.roles = options.emit != "graphdef";
  // Of a TensorFlow graph a group is one collective. Devices are near each other, and a launch costs as much as a small
  // bucket; over a network of 1 Gbit/s 4 MiB take 35 ms.
  const bool onDevices = llvm::StringRef(options.target).starts_with("cuda");
  if (options.emit != "graphdef")
    distribute.bucketMb = onDevices ? 25 : 4;
  if (onDevices)
    buildDistributePipelineForDevices(manager, distribute);
  else
    buildDistributePipeline(manager, distribute);
}

void addVerifyStage(mlir::OpPassManager &manager, Stage stage, const Target &target) {
  if (stage == Stage::Distributed)
    manager.addPass(createDistVerifyCollectives());
  else if (stage == Stage::Plan)
    addPlanVerifiers(manager, target.isDevice());
}

void addLowerStage(mlir::OpPassManager &manager, const CompileOptions &options, int64_t replicaBatch, bool joint) {
  LowerToRuntimeOptions lower;
  lower.target = options.target;
  lower.replicaBatch = replicaBatch;
  lower.feeds = options.feeds;
  lower.graph = options.graph;
  lower.strategy = options.strategy;
  lower.asserts = options.asserts;
  lower.cores = options.coresPerReplica;
  lower.precision = options.precision;
  lower.maxMemory = static_cast<int64_t>(options.maxMemory);
  lower.joint = joint;
  buildLowerToRuntimePipeline(manager, lower);
}

void addImagesStage(mlir::OpPassManager &manager, const CompileOptions &options, const Target &target) {
  manager.addPass(createAttentionKernels());
  manager.addPass(createScheduleForGpu());
  buildLowerGpuKernelsPipeline(manager);
  MakeImagesOptions images;
  images.target = target.name;
  images.ptxOnly = options.emit == "ptx";
  images.verbose = options.verbose;
  images.cached = options.cache;
  manager.addPass(createMakeImages(images));
}

void addLLVMStage(mlir::OpPassManager &manager) {
  // Of a program for devices those that run on the host.
  buildLowerKernelsPipeline(manager);
  manager.addPass(createConvertDrtToLLVM());
}

} // namespace distc

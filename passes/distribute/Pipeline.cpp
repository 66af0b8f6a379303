//===- Pipeline.cpp - The stage of distribution -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/distribute/Passes.h"

namespace distc {

void buildDistributePipeline(mlir::OpPassManager &manager, const DistributeOptions &options) {
  // Who runs it, on which part of the batch: the rest asks the topology.
  DistReplicateOptions replicate;
  replicate.strategy = options.strategy;
  replicate.resources = options.resources;
  replicate.replicas = options.replicas;
  replicate.servers = options.servers;
  replicate.oneProcessPerReplica = options.oneProcessPerReplica;
  manager.addPass(createDistReplicate(replicate));
  // On the graph as its author wrote it, before anything hides the raw gradients.
  manager.addPass(createDistInsertSynchronizers());
  if (!options.unrolled)
    return;
  // Where synchronization belongs is found once, in the program that stands for all replicas.
  manager.addPass(createDistUnroll());
  manager.addPass(createDistRenameScopes());
}

#define GEN_PASS_REGISTRATION
#include "passes/distribute/Passes.h.inc"

void registerDistributePasses() {
  registerPasses();
  mlir::PassPipelineRegistration<DistributeOptions>("distribute", "Distributes a graph by a strategy",
                                                    buildDistributePipeline);
}

} // namespace distc

//===- Pipeline.cpp - The stage of distribution -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/distribute/servers/Serving.h"

namespace distc {

static void buildPipeline(mlir::OpPassManager &manager, const DistributeOptions &options, bool inStep) {
  // Before anything asks what a variable's slots are.
  if (options.formUpdates) {
    manager.addPass(createDistFormUpdates());
    // Partitioners and synchronizers are chosen by whether a gradient is sparse.
    manager.addPass(createDistFormRowUpdates({options.batch}));
  }
  // Who runs it, and who holds what: the rest asks the topology and the strategy in the module.
  DistApplyStrategyOptions apply;
  apply.strategy = options.strategy;
  apply.resources = options.resources;
  apply.replicas = options.replicas;
  apply.servers = options.servers;
  apply.oneProcessPerReplica = options.oneProcessPerReplica;
  manager.addPass(createDistApplyStrategy(apply));
  // The batch's flow of what follows is an open one.
  manager.addPass(createDistOpenBatch({options.batch}));
  // It asks which tables servers hold; slots are split as their tables are. Devices have all of both.
  if (options.formUpdates && !inStep)
    manager.addPass(createDistFormTableUpdates());
  // What comes after knows shards only, as variables of their own.
  manager.addPass(createDistPartitionVariables());
  // Shards have been read for it.
  manager.addPass(createDistPassServedValues());
  if (inStep)
    manager.addPass(createDistKeepInStep());
  // Behind it: shards have places of their own.
  if (options.colocateServers) {
    DistColocateServersOptions colocate;
    colocate.whereSupported = options.whereSupported;
    manager.addPass(createDistColocateServers(colocate));
  }
  // Of servers that are tasks of their own.
  manager.addPass(createDistFollowServers());
  // Of the graph before collectives: those that couple replicas ask what synchronization leaves.
  manager.addPass(createDistSeparateRows());
  // Of the author's graph, too: what couples replicas, or is reduced, asks how often an update happens.
  manager.addPass(createDistMarkBatchUpdates());
  // Before shares are marked: what is gathered draws no numbers of a replica's own.
  manager.addPass(createDistCoupleReplicas());
  manager.addPass(createDistReplicate());
  // On the graph as its author wrote it, before anything hides the raw gradients.
  DistInsertSynchronizersOptions synchronize;
  synchronize.bucketMb = options.bucketMb;
  synchronize.eachApart = inStep;
  manager.addPass(createDistInsertSynchronizers(synchronize));
  // Behind it, since what sees reduced values is the same in all replicas; before replicas or roles are graphs of their
  // own.
  manager.addPass(createDistJoinFetches());
  // Behind what asks the batch's flow, which knows reductions.
  if (options.colocateServers)
    manager.addPass(createDistServeUpdates());
  manager.addPass(createDistVerifyCollectives());
  if (!options.unrolled) {
    // Of a plan with servers: what each role runs. Without them the program stands for all tasks.
    if (options.roles) {
      manager.addPass(createDistSplitRoles());
      manager.addPass(createDistVerifyCollectives());
    }
    return;
  }
  // Where synchronization belongs is found once, in the program that stands for all replicas.
  manager.addPass(createDistUnroll());
  manager.addPass(createDistRenameScopes());
}

void buildDistributePipeline(mlir::OpPassManager &manager, const DistributeOptions &options) {
  buildPipeline(manager, options, /*inStep=*/false);
}

void buildDistributePipelineForDevices(mlir::OpPassManager &manager, const DistributeOptions &options) {
  buildPipeline(manager, options, /*inStep=*/true);
}

#define GEN_PASS_REGISTRATION
#include "passes/distribute/Passes.h.inc"

void registerDistributePasses() {
  registerPasses();
  mlir::PassPipelineRegistration<DistributeOptions>("distribute", "Distributes a graph by a strategy",
                                                    buildDistributePipeline);
}

} // namespace distc

//===- Passes.h - Passes that distribute a graph -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_PASSES_H
#define DISTC_PASSES_DISTRIBUTE_PASSES_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace distc {

#define GEN_PASS_DECL
#include "passes/distribute/Passes.h.inc"

struct DistributeOptions : public mlir::PassPipelineOptions<DistributeOptions> {
  Option<std::string> strategy{*this, "strategy", llvm::cl::desc("A file, or NAME[:key=value,...]"),
                               llvm::cl::init("AllReduce")};
  Option<std::string> resources{*this, "resources", llvm::cl::desc("Resource file (YAML)"), llvm::cl::init("")};
  Option<int> replicas{*this, "replicas", llvm::cl::desc("Replicas on this machine, instead of a resource file"),
                       llvm::cl::init(0)};
  Option<int> servers{*this, "ps", llvm::cl::desc("Parameter servers on this machine"), llvm::cl::init(0)};
  Option<bool> oneProcessPerReplica{*this, "one-process-per-replica", llvm::cl::desc("A task for each replica"),
                                    llvm::cl::init(false)};
  Option<bool> colocateServers{*this, "colocate-servers", llvm::cl::desc("Servers in the processes of workers"),
                               llvm::cl::init(false)};
  Option<bool> formUpdates{*this, "form-updates", llvm::cl::desc("Updates that are spelled out become one operation"),
                           llvm::cl::init(false)};
  Option<int64_t> batch{*this, "batch", llvm::cl::desc("The global batch; 0: not known"), llvm::cl::init(0)};
  Option<bool> whereSupported{
      *this, "where-supported",
      llvm::cl::desc("Leaves servers alone that cannot share processes, with a program for each"),
      llvm::cl::init(false)};
  Option<bool> roles{*this, "roles", llvm::cl::desc("A program for each role, where there are servers"),
                     llvm::cl::init(true)};
  Option<int64_t> bucketMb{*this, "bucket-mb", llvm::cl::desc("MiB that gradients on their way have together; 0: any"),
                           llvm::cl::init(0)};
  Option<bool> unrolled{*this, "unrolled", llvm::cl::desc("All replicas in one graph, under scopes replica_K/"),
                        llvm::cl::init(false)};
};

/// The stage of distribution: a module of the dfg dialect becomes one with topology and synchronization.
void buildDistributePipeline(mlir::OpPassManager &manager, const DistributeOptions &options);

/// Registers the passes and the pipeline `distribute`.
void registerDistributePasses();

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_PASSES_H

//===- Serving.h - Servers that serve on their own, in executables -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Servers that share a process with their replicas, where an update is not one gradient of every replica, all of the
// same step: asynchronous updates, gradients that are counted, replicas that are ahead of others.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SERVERS_SERVING_H
#define DISTC_PASSES_DISTRIBUTE_SERVERS_SERVING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/strategy/AppliedStrategy.h"

namespace distc {

/// What the servers of a module wait for, once dist-colocate-servers has given what they hold to a worker.
struct Serving {
  bool async = false;
  int64_t required = 1; // gradients that make an update
  int64_t staleness = 0;
};

/// Nothing where replicas are in step, or servers have processes of their own.
std::optional<Serving> getServing(mlir::ModuleOp module, const AppliedStrategy &applied);

/// Why the servers of a strategy that serves on its own cannot in an executable, with the way out; "" where they can.
std::string findServingObstacle(const AppliedStrategy &applied);

/// Takes bounds of staleness from the strategy, with a warning.
void keepInStep(mlir::ModuleOp module, const AppliedStrategy &applied);

/// As buildDistributePipeline, for devices, whose replicas are always in step.
void buildDistributePipelineForDevices(mlir::OpPassManager &manager, const DistributeOptions &options);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SERVERS_SERVING_H

//===- UpdatePlacement.h - Where gradients become updates --------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// With parameter servers, what lies between gradients and updates has one place:
//
//   a server  where all that uses the gradients are updates of its variables
//   the chief where they are updates of several servers (clipping by a global norm)
//   workers   where one is of a variable that every worker has, or the loss is among them, which each worker gives
//
// Nodes that hang together by values that were raw gradients have the same place.
// The attribute `dist.place` on a node says it: `<"ps" K>`, `<"worker" 0>` for the
// chief, none for every worker.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SERVERS_UPDATEPLACEMENT_H
#define DISTC_PASSES_DISTRIBUTE_SERVERS_UPDATEPLACEMENT_H

#include "passes/distribute/synchronize/RawGradients.h"

namespace distc {

class UpdatePlacement {
public:
  /// `consumers`: the nodes that see reduced values, updates included.
  UpdatePlacement(dfg::GraphOp graph, const RawGradients &gradients, const SyncPolicies &policies,
                  const llvm::DenseSet<mlir::Operation *> &consumers);

  /// Where the reduced `gradient` is used; null: by every worker.
  dist::PlaceAttr get(mlir::Value gradient) const { return lookup(gradient.getAsOpaquePointer()); }
  dist::PlaceAttr get(mlir::Operation *consumer) const { return lookup(consumer); }
  dist::PlaceAttr getChief() const { return chief; }

private:
  unsigned getNumber(const void *member);
  unsigned findRoot(unsigned number) const;
  void join(const void *x, const void *y);
  dist::PlaceAttr lookup(const void *member) const;

  llvm::DenseMap<const void *, unsigned> numbers;
  mutable llvm::SmallVector<unsigned> parents;
  llvm::DenseMap<unsigned, dist::PlaceAttr> places; // of roots
  dist::PlaceAttr chief;
};

/// Completes what takes place on servers, once pushes and takes are there: marks the updates and what is before them,
/// gives servers what they cannot compute, makes pulls of workers' reads, and ends the step with tokens. Fails with a
/// diagnostic where an initializer on a server needs what only workers have.
llvm::LogicalResult finishServers(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step,
                                  const llvm::DenseSet<mlir::Operation *> &consumers, const UpdatePlacement &placement);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SERVERS_UPDATEPLACEMENT_H

//===- Synchronizer.h - Puts synchronization behind raw gradients --*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SYNCHRONIZER_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SYNCHRONIZER_H

#include "passes/distribute/servers/UpdatePlacement.h"
#include "passes/distribute/synchronize/RawGradients.h"

namespace distc {

/// Rewrites the block of one graph: orders it into waves, each followed by its synchronization.
class Synchronizer {
public:
  Synchronizer(dfg::GraphOp graph, const BatchFlow &flow, const RawGradients &gradients, const SyncPolicies &policies,
               const strategies::StepNodes &step, UpdatesOf which);

  /// The nodes that see reduced values: updates, and the path to them (copies where forward needs the replica's own).
  const llvm::DenseSet<mlir::Operation *> &getConsumers() const { return consumers; }

  void run(const UpdatePlacement &placement);

private:
  struct BucketKey;
  /// What collectives are made of, with the nodes that make it: of a sparse gradient the values.
  using Members = llvm::SmallVector<std::pair<mlir::Operation *, mlir::Value>>;

  /// The wave in which all that a raw gradient's collective takes is there.
  unsigned getWave(mlir::Value value) const;
  void copyWhatForwardNeeds();
  bool isOfOtherUpdates(mlir::Operation *op) const;
  BucketKey getKey(mlir::Operation *op, mlir::Value value) const;
  void insertCollectives(const Members &members);
  llvm::SmallVector<mlir::Value> accumulate(mlir::OpBuilder &builder, const BucketKey &key,
                                            llvm::ArrayRef<mlir::Value> members);
  void reduce(mlir::Operation *after, const BucketKey &key, llvm::ArrayRef<mlir::Value> members);
  void gather(mlir::Operation *after, const BucketKey &key, mlir::Value values);
  void serve(mlir::Operation *after, const BucketKey &key, mlir::Value value);
  void replace(mlir::Value from, mlir::Value to);
  mlir::Location getLocation(const llvm::Twine &name) const;

  mlir::Block &block;
  const BatchFlow &flow;
  const RawGradients &gradients;
  const SyncPolicies &policies;
  const strategies::StepNodes &step;
  const UpdatePlacement *placement = nullptr;
  llvm::DenseSet<mlir::Operation *> consumers;
  llvm::DenseMap<mlir::Value, mlir::Value> replacements;
  llvm::DenseMap<mlir::Value, mlir::Value> joinedIndices; // by the values that they are of
  llvm::DenseMap<mlir::Operation *, unsigned> waves;
  llvm::StringMap<unsigned> accumulators; // of each variable, counted
  mlir::Operation *lastTake = nullptr;
  const UpdatesOf which;
  /// Batches whose gradients make one of the updates.
  const int64_t accumulateSteps;
  uint32_t buckets = 0, accumulations = 0;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_SYNCHRONIZER_H

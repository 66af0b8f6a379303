//===- FusionPlan.h - Which element-wise operations become one kernel ---*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Vertical fusion of producers into their consumers, decided for a whole block at
// once and from its end: when an operation's turn comes, all its users have found
// their clusters. Each operation is looked at once, so time is linear in operations
// and uses. Nothing is changed; `drt-fuse-elementwise` builds what is planned.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_FUSIONPLAN_H
#define DISTC_PASSES_LOWER_KERNELS_FUSIONPLAN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace distc {

class MemoryWrites;

/// How many tensors a kernel reads at most, where operations are made into one: about as many streams as hardware
/// prefetchers follow.
constexpr size_t kMaxKernelInputs = 64;

/// A value as a cluster reads it: its element at `second` of the loops of the cluster's root.
using FusedValue = std::pair<mlir::Value, mlir::AffineMap>;
/// An operation as a cluster computes it: the loops of the root to its own.
using FusedOp = std::pair<mlir::Operation *, mlir::AffineMap>;

/// Whether its results are functions of elements alone: not sums, and not what was in the memory of the results.
bool isElementwise(mlir::linalg::GenericOp op);
/// The operation that makes `value`, in the loops in which it is read, where these follow from it.
std::optional<FusedOp> getProducer(const FusedValue &value);
/// What `operand` of the operation reads.
FusedValue getRead(const FusedOp &op, mlir::OpOperand &operand);

/// Operations that become one: the root, whose loops they share and whose results alone leave it, and those that only
/// lead to it.
struct FusionCluster {
  llvm::SmallVector<FusedOp, 1> members; // the root is the first
  llvm::SmallDenseSet<FusedValue> inputs;
  int64_t cost = 0;

  mlir::linalg::GenericOp getRoot() const { return llvm::cast<mlir::linalg::GenericOp>(members.front().first); }
};

class FusionPlan {
public:
  /// `maxRepeated`: instructions of an operation that reads as much as it makes, and is done anew for each of several
  /// readers.
  FusionPlan(mlir::Block &block, int64_t maxRepeated);

  /// Clusters of two and more operations.
  llvm::SmallVector<const FusionCluster *> getClusters() const;

private:
  void add(mlir::linalg::GenericOp op, const MemoryWrites &writes);
  /// A cluster of `op` alone; returns the loops of the root to its own.
  mlir::AffineMap addCluster(mlir::linalg::GenericOp op);
  /// Adds `op`, in these loops, if the cluster may compute it and has room for it.
  bool join(FusionCluster &cluster, const FusedOp &op, const MemoryWrites &writes);

  int64_t maxRepeated;
  std::vector<FusionCluster> clusters;
  /// The clusters that compute an operation.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::pair<size_t, mlir::AffineMap>, 1>> computedIn;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_FUSIONPLAN_H

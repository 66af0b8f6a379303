//===- Exchange.h - Compressors and aggregators as nodes -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Executables for CPUs compress and aggregate in their runtime (runtime/cpu). Where
// that does not run, in TensorFlow and on devices, the same is written as nodes of
// the graph, with whatever collectives and variables there are: an Exchange.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_EXCHANGE_EXCHANGE_H
#define DISTC_PASSES_DISTRIBUTE_EXCHANGE_EXCHANGE_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/exchange/StockNodes.h"

namespace distc {

/// How a program's replicas give each other values and keep what steps leave to the next ones.
struct Exchange {
  Exchange(mlir::Block &block, int64_t replicas) : nodes(block), replicas(replicas) {}
  virtual ~Exchange() = default;

  StockNodes nodes;
  /// Of all programs.
  int64_t replicas;

  /// Whether other programs have replicas too: without, nothing travels.
  virtual bool hasPeers() const = 0;
  /// Of all programs' values: their sum ("Reduce"), or one behind the other along the first axis ("Gather").
  virtual mlir::Value collective(llvm::StringRef kind, mlir::Value value, dist::Spec spec) = 0;

  /// A variable of this program's own that no checkpoint has, and its value before the step.
  virtual mlir::Value addState(llvm::StringRef name, mlir::DenseElementsAttr initial) = 0;
  virtual mlir::Value readState(llvm::StringRef name, mlir::Value handle) = 0;
  /// Its value behind the step.
  virtual void keepState(llvm::StringRef name, mlir::Value handle, mlir::Value value) = 0;
};

/// The operations of `dist` that a program's replicas issue alike, as one: the replicas' in their order.
using Issue = llvm::SmallVector<mlir::Operation *, 2>;

/// Sums over all replicas of which each sends its largest elements; shapes are static and elements float32.
llvm::SmallVector<mlir::Value> sumLargest(Exchange &exchange, const Issue &issue, dist::Spec spec,
                                          dist::CompressionAttr compression);
/// Sums or means over all replicas by PowerSGD, of the same.
llvm::SmallVector<mlir::Value> reduceLowRank(Exchange &exchange, const Issue &issue, dist::Reduction reduction,
                                             dist::Spec spec, dist::CompressionAttr compression);

/// The rule over `stacked`, whose first axis has `count` gradients; of the type of one, `result`.
llvm::FailureOr<mlir::Value> aggregate(Exchange &exchange, mlir::Operation *op, dist::AggregatorAttr rule,
                                       mlir::Value stacked, int64_t count, mlir::Type result);
/// What all replicas' gradients of a bucket become by its aggregator. `rows` are those of this program's replicas, each
/// flat.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> aggregateBucket(Exchange &exchange, dist::AllReduceOp reduce,
                                                                mlir::ArrayRef<mlir::Value> rows);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_EXCHANGE_EXCHANGE_H

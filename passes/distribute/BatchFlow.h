//===- BatchFlow.h - How the batch flows through a graph ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// N replicas run the graph, each on its part of the batch. What a value of one
// replica has to do with the value that one device would compute on the whole
// batch follows from the symbolic shapes (ShapeContext) and from how linear each
// node is. With s its scale:
//
//   replicated  the same in every replica; the whole batch's is N^s times it
//   sharded     it has an axis whose size depends on b; the replicas' parts along
//               it make the whole batch's value, N^s times them
//   partial     no such axis, but a sum over the batch: the whole batch's value is
//               N^s times the mean of the replicas' values. s = 0: a mean (of the
//               batch, divided by its size), s = 1: a sum
//   local       differs between replicas in another way (a nonlinear function of
//               partial values)
//
// The scale begins with b itself, which is 1 (the whole batch is N times a
// replica's); a product adds scales, a quotient subtracts them, a sum over the
// batch adds 1. A nonlinear node of values whose scale is 0 has scale 0 as an
// estimate of the whole batch's value (a batch normalization by the replica's own
// statistics); otherwise its scale is not known.
//
// A feed is batched where its placeholder's first size is unknown. In a graph in
// which no placeholder's is, the batch is the first size that all placeholders of
// rank 1 and more have in common; such a graph keeps its batch in each replica, and
// there is no symbol to follow, so that partial values count as means.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_BATCHFLOW_H
#define DISTC_PASSES_DISTRIBUTE_BATCHFLOW_H

#include "dialects/dfg/Dfg.h"

namespace distc {

struct Flow {
  enum Kind { Replicated, Sharded, Partial, Local };
  Kind kind = Replicated;
  /// The batch's axis, where sharded.
  int64_t axis = 0;
  /// s above; none where it is not known.
  std::optional<int> scale = 0;
  /// Zero everywhere, and so of any scale.
  bool zero = false;
};

class BatchFlow {
public:
  /// Follows the batch through all nodes of `graph`, in block order, each once. Fails with a diagnostic where shapes do
  /// not fit.
  static llvm::FailureOr<BatchFlow> compute(dfg::GraphOp graph);

  Flow get(mlir::Value value) const { return flows.lookup(value); }
  /// Shapes with the batch as a symbol.
  const dfg::ShapeContext &getShapes() const { return shapes; }
  /// Whether each replica is given its own part of what is fed.
  bool isBatched(dfg::PlaceholderOp feed) const { return get(feed.getResult()).kind == Flow::Sharded; }
  /// The batch that the graph fixes, 0 where it is open.
  int64_t getFixedBatch() const { return fixedBatch; }

  /// "partial mean", "sharded(0) * N^-1": for remarks and tests.
  std::string explain(mlir::Value value) const;

private:
  BatchFlow() = default;
  void findBatch(mlir::Block &block);
  void restoreBatchAxis(mlir::Operation *op);
  void visit(mlir::Operation *op);
  bool visitSynchronizer(mlir::Operation *op);
  Flow getScale(mlir::Operation *op, bool contracts) const;
  bool keepsPartial(mlir::Operation *op) const;

  dfg::ShapeContext shapes;
  llvm::DenseMap<mlir::Value, Flow> flows;
  int64_t fixedBatch = 0;
};

/// The flow of a graph, computed once for the passes between which no node changes.
struct BatchFlowAnalysis {
  explicit BatchFlowAnalysis(mlir::Operation *graph) : flow(BatchFlow::compute(llvm::cast<dfg::GraphOp>(graph))) {}
  const llvm::FailureOr<BatchFlow> flow;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_BATCHFLOW_H

//===- BatchFlow.h - How the batch flows through a graph ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// N replicas run the graph, each on its part of the batch. What a value of one
// replica has to do with the value that one device would compute on the whole
// batch follows from the symbolic shapes (ShapeContext), from where each node
// leaves the batch's axis (BatchAxis.h) and from how linear it is. With s its scale:
//
//   replicated  the same in every replica; the whole batch's is N^s times it
//   sharded     it has an axis whose size is a multiple of b; the replicas' parts
//               along it make the whole batch's value, N^s times them
//   partial     no such axis, but a sum over the batch: the whole batch's value is
//               N^s times the mean of the replicas' values. s = 0: a mean (of the
//               batch, divided by its size), s = 1: a sum
//   local       nothing is known: a nonlinear function of partial values, what
//               looks at several rows of the batch, what no rule is for
//
// The first three are proven, node by node: a node has one of them only if a rule
// says so for operands that have one themselves. The scale begins with b itself,
// which is 1 (the whole batch is N times a replica's); a product adds scales, a
// quotient subtracts them, a sum over the batch adds 1.
//
// Where the strategy says coupling=replica, what cannot be proven is estimated: what
// has the batch's axis counts as sharded, whatever its rows are computed from (a batch
// normalization by the replica's own statistics), and what has no scale as local.
//
// A feed is batched where its placeholder's first size is unknown. In a graph in
// which no placeholder's is, the batch is the first size that all placeholders of
// rank 1 and more have in common; such a graph keeps its batch in each replica. Which
// of its numbers are that size is seen from what they meet (FixedBatch.h).
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_BATCHFLOW_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_BATCHFLOW_H

#include "passes/distribute/flow/BatchAxis.h"

namespace distc {

struct Flow {
  enum Kind { Replicated, Sharded, Partial, Local };
  Kind kind = Replicated;
  /// Where sharded.
  BatchAxis batch;
  /// s above; none where it is not known, as of shapes that have the batch's size beside others, and of estimates.
  std::optional<int> scale = 0;
  /// Zero everywhere, and so of any scale.
  bool zero = false;
  /// Of sizes: some are functions of the share's size that are no multiple of it (half of it, rounded down), so that
  /// nothing is known of those of the whole batch.
  bool ofShare = false;
  /// Where local: the node that no rule could be found for.
  mlir::Operation *cause = nullptr;

  bool isSharded(int64_t axis) const { return kind == Sharded && batch.axis == axis; }
};

class BatchFlow {
public:
  /// Follows the batch through all nodes of `graph`, in block order, each once. The coupling is the module's. Fails
  /// with a diagnostic where shapes do not fit.
  static llvm::FailureOr<BatchFlow> compute(dfg::GraphOp graph);
  /// As one replica alone has it, for which the whole batch is its own: what couples replicas hands on what it is
  /// given, and what is not proven is estimated. So its scales are those of the graph as its author wrote it.
  static llvm::FailureOr<BatchFlow> computeOfOneReplica(dfg::GraphOp graph);

  const Flow &get(mlir::Value value) const {
    static const Flow replicated;
    auto it = flows.find(value);
    return it == flows.end() ? replicated : it->second;
  }
  /// Follows the batch through `op` again, which is new or has other operands. Fails with a diagnostic where shapes do
  /// not fit.
  llvm::LogicalResult revisit(mlir::Operation *op);

  /// Whether `value` is the whole batch's in every replica.
  bool isWhole(mlir::Value value) const {
    const Flow &flow = get(value);
    return flow.kind == Flow::Replicated && (flow.zero || flow.scale == 0);
  }
  /// Shapes with the batch as a symbol.
  const dfg::ShapeContext &getShapes() const { return shapes; }
  /// Whether each replica is given its own part of what is fed.
  bool isBatched(dfg::PlaceholderOp feed) const { return get(feed.getResult()).kind == Flow::Sharded; }
  /// The batch that the graph fixes, 0 where it is open.
  int64_t getFixedBatch() const { return fixed.size; }
  /// Where the graph fixes its batch, the power of N by which collectives and rescaling made `value` larger than what
  /// the graph gives of a replica's rows; with the scale, how it grows with the batch. None where that is not known, as
  /// of a sum beside a number that may be its count.
  std::optional<int> getGrowth(mlir::Value value) const {
    auto it = growths.find(value);
    return it == growths.end() ? std::optional<int>(0) : it->second;
  }
  /// Whether `value`, of which the flow knows the scale, is the same of a larger batch like this: no sum over it.
  bool growsNot(mlir::Value value) const {
    std::optional<int> growth = getGrowth(value), scale = get(value).scale;
    return get(value).zero || (growth && scale && *growth + *scale == 0);
  }
  /// Where the graph fixes its batch: a number that `op` multiplies or divides by what is computed, element by element,
  /// of values that collectives made whole, and that may be the size of the sample; null where there is none.
  mlir::Operation *findSampleSize(mlir::Operation *op) const;
  /// Where the graph fixes its batch: whether `op` multiplies a mean over the batch, or divides it, by the batch's
  /// size, or adds up copies of something whose number may be that.
  bool mayCountRows(mlir::Operation *op) const;
  /// Where the graph fixes its batch: the nodes that draw as many rows as it has without anything that shows whether
  /// they are drawn for the examples.
  llvm::SmallVector<mlir::Operation *> findUnseenDraws(mlir::Block &block) const {
    return fixed ? fixed.findUnseenDraws(block, shapes) : llvm::SmallVector<mlir::Operation *>();
  }
  /// Where the graph fixes its batch: a predicate of such numbers alone by which `op` chooses, and which may be another
  /// one of the whole batch; null where there is none.
  mlir::Operation *findDecision(mlir::Operation *op) const;
  /// Where the graph fixes its batch: a number that `op` takes, element by element, that is the batch's size, or one by
  /// it, and was not seen to count terms; null where there is none.
  mlir::Operation *findFixedSize(mlir::Operation *op) const;

  /// Whether a size of `value` depends on the batch's.
  bool hasBatchSize(mlir::Value value) const;
  /// Whether replicas use values of their own (coupling=replica).
  bool isEstimated() const { return estimates; }

  /// "partial mean", "sharded(0) * N^-1": for remarks, errors and tests.
  std::string explain(mlir::Value value) const;

private:
  BatchFlow() = default;
  llvm::LogicalResult follow(dfg::GraphOp graph);
  void setFixedBatch(dfg::GraphOp graph);
  std::optional<dfg::Dims> findReshapedRows(mlir::Operation *op) const;
  llvm::SmallVector<dfg::Dims> restoreBatchAxis(mlir::Operation *op);
  void visitFixed(mlir::Operation *op, bool learns);
  void learn(mlir::Operation *op);
  void visit(mlir::Operation *op);
  bool isNumberOfRows(mlir::Operation *op, mlir::Value factor) const;
  std::optional<int> findGrowth(mlir::Operation *op, unsigned result) const;
  bool visitSynchronizer(mlir::Operation *op);
  bool visitCoupling(mlir::Operation *op);
  bool isJoinedReduction(mlir::Operation *op) const;
  std::optional<Flow> followElements(mlir::Operation *op, mlir::Value result) const;
  Flow prove(mlir::Operation *op, mlir::OpResult result) const;
  Flow proveByRules(mlir::Operation *op, mlir::OpResult result) const;
  Flow getUnproven(mlir::Operation *op) const;
  std::optional<int> getScale(mlir::Operation *op, llvm::ArrayRef<mlir::Value> linear,
                              llvm::ArrayRef<mlir::Value> others, bool &zero) const;
  Flow estimate(mlir::Operation *op, mlir::Value result) const;
  bool namesByPosition(mlir::Value mask) const;
  bool namesOneExample(mlir::Value mask) const;
  bool fillsFewRows(mlir::Operation *op) const;
  bool hasKnownSizes(mlir::Value value) const;
  void noteRows(mlir::Value value, const BatchAxis &batch);
  bool hasUnknownElements(mlir::Value value) const;
  Flow estimateScale(mlir::Operation *op, bool contracts) const;
  bool keepsPartial(mlir::Operation *op) const;

  dfg::ShapeContext shapes;
  llvm::DenseMap<mlir::Value, Flow> flows;
  FixedBatch fixed;
  llvm::DenseMap<mlir::Value, std::optional<int>> growths; // but for 0
  bool estimates = false;
  bool ofOneReplica = false;
};

/// Whether `op` gives a replica of other replicas' examples, or of the whole batch's size, what a value of its step is
/// computed from (dist-couple-replicas).
bool isCoupling(mlir::Operation *op);

/// The flow of a graph, computed once for the passes between which no node changes.
struct BatchFlowAnalysis {
  explicit BatchFlowAnalysis(mlir::Operation *graph) : flow(BatchFlow::compute(llvm::cast<dfg::GraphOp>(graph))) {}
  const llvm::FailureOr<BatchFlow> flow;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_BATCHFLOW_H

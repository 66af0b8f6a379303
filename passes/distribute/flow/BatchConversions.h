//===- BatchConversions.h - Values in another form of the batch's flow -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Of a value of each replica, the whole batch's in all of them: a partial one is
// all-reduced, a sharded one gathered, one that has the share's size in it computed
// again from the whole batch's; and the replica's own rows of a value that all have.
// A conversion stands right behind the value, and is made once.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_BATCHCONVERSIONS_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_BATCHCONVERSIONS_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "llvm/ADT/MapVector.h"

namespace distc {

class BatchConversions {
public:
  /// Follows `flow` for the nodes that it makes and changes.
  BatchConversions(dfg::GraphOp graph, BatchFlow &flow, int64_t replicas);

  /// `value` as the whole batch has it, in every replica; null where no rule is for it. Of a function of sums, which
  /// has no proof, the operands are made whole where they are.
  mlir::Value makeWhole(mlir::Value value);
  /// `value` with scale 0; null where it has none, or is of integers that would have to be divided.
  mlir::Value rescale(mlir::Value value);
  bool isComputedOfSizes(mlir::Value value) const;
  /// `value` times N^power, a power that is not 0: of a scale that is less by it.
  mlir::Value rescaleBy(mlir::Value value, int64_t power);
  /// This replica's part, along `axis`, of a value that is whole; null where the axis is none of the whole batch.
  mlir::Value takeRows(mlir::Value value, int64_t axis);
  /// Makes of `op`, a maximum over the batch or the like, that of all replicas' own ones. Says whether it is one.
  bool joinReduction(mlir::Operation *op);

  /// What a partial value became; null where it is not reduced.
  mlir::Value getReduced(mlir::Value partial) const { return reduced.lookup(partial); }
  const llvm::MapVector<mlir::Value, mlir::Value> &getAllReduced() const { return reduced; }

  /// As BatchFlow::revisit, without diagnostics.
  llvm::LogicalResult revisit(mlir::Operation *op);
  /// Erases conversions that nothing uses. Says whether any is left.
  bool eraseUnused();

private:
  mlir::Value convert(mlir::Value value);
  mlir::Value reduce(mlir::Value value);
  mlir::Value gather(mlir::Value value);
  mlir::Operation *splitSegments(mlir::Value value, llvm::ArrayRef<int64_t> segments,
                                 llvm::function_ref<mlir::Type(dfg::Dim)> typeOf);
  mlir::Value gatherFirstAxis(mlir::Value value);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  mlir::Value moveToFront(mlir::Value value, int64_t axis);
  mlir::Value moveFromFront(mlir::Value value, int64_t axis);
  mlir::Value makeSizeWhole(mlir::Value value);
  mlir::Value recompute(mlir::Value value);
  bool makeOperandsWhole(mlir::Operation *op);
  mlir::Value constant(mlir::Value before, llvm::ArrayRef<int32_t> values, bool scalar = false);
  mlir::Location locate(llvm::StringRef what, mlir::Value value);
  /// The node of the graph that `value` is, or is a conversion of.
  llvm::StringRef getSource(mlir::Value value) const;
  /// A node behind `after`.
  template <typename Op, typename... Args> mlir::Value create(mlir::Value after, llvm::StringRef what, Args &&...args) {
    builder.setInsertionPointAfterValue(after);
    return add(Op::create(builder, locate(what, after), std::forward<Args>(args)...));
  }
  mlir::Value add(mlir::Operation *op);

  mlir::OpBuilder builder;
  BatchFlow &flow;
  int64_t replicas;
  std::string scope;
  llvm::StringSet<> names;
  llvm::DenseMap<mlir::Value, mlir::Value> whole, rescaled;
  llvm::MapVector<mlir::Value, mlir::Value> reduced;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> rows;
  llvm::SmallVector<mlir::Operation *> made;
  llvm::DenseSet<mlir::Value> underWay;
};

/// What `op`, a dist.whole_size or dist.rescale, multiplies its operand by where there are so many replicas.
mlir::DenseElementsAttr getWholeFactors(mlir::Operation *op, int64_t replicas);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_BATCHCONVERSIONS_H

//===- BatchAxis.h - Where the batch's axis goes in a node --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What each operation does to an axis along which its operands are sharded, whatever
// its elements are. An operation that is not listed has no rule: nothing is known of
// its results where an operand is sharded.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXIS_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXIS_H

#include "passes/distribute/flow/FixedBatch.h"

namespace distc {

/// An axis along which the replicas' parts make the whole batch's value.
struct BatchAxis {
  int64_t axis = 0;
  /// The replicas' parts follow each other segment by segment: of the whole batch's axis, the first segment of replica
  /// 0, of replica 1, ..., then the second segment of each. Sizes are multiples of b. The batch itself is one segment
  /// of 1; concat([x, -x], 0) has two.
  llvm::SmallVector<int64_t, 1> segments = {1};
  /// All elements along the axis are equal, in all replicas: it may be taken for any segments of the same size.
  bool uniform = false;
};

/// What an operation makes of the batch's axis.
struct BatchPlacement {
  enum Kind {
    Unknown, // no rule says that it is one of the others
    Without, // no operand that matters is sharded, and the result is not either
    Along,   // the result is sharded along `axis`, and each row follows from the operands' rows alone
    Summed   // the result is the sum over the batch
  };
  Kind kind = Unknown;
  BatchAxis axis;
};

/// Whether `op` draws numbers, of which those of a share's rows are a part of the whole batch's. Of a permutation they
/// are not.
bool drawsRows(mlir::Operation *op);
/// Operands that say how large, where or along which axis, and are not computed with.
bool isParameterOperand(mlir::Operation *op, unsigned operand);
/// Whether all that parameters with the batch's size in them do shows in the result's sizes.
bool showsParametersInSizes(mlir::Operation *op);

/// `axes`: of each operand, where it is sharded (of the shape of a slice's gradient: where what was sliced is).
/// `fixed`: where the graph has a number for the batch, so that sizes do not tell rows of the batch from others.
BatchPlacement findBatchPlacement(mlir::Operation *op, unsigned result, llvm::ArrayRef<std::optional<BatchAxis>> axes,
                                  const dfg::ShapeContext &shapes, const FixedBatch *fixed = nullptr);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXIS_H

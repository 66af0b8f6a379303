//===- RowForm.h - Operations that work on the same rows ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Softmax, cross entropy and layer normalization are several operations over the
// same rows: an operation needs of another's result its own row alone. What
// `drt-fuse-rows` puts into one kernel (on tensors) and the schedule of that
// kernel relies on (on buffers).
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_ROWFORM_H
#define DISTC_PASSES_LOWER_GPU_ROWFORM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace distc::schedule {

struct RowForm {
  /// A row is `columns` elements that lie side by side.
  int64_t rows, columns;

  /// Elements from elements; a value a row from its elements; a value a row from values of the row.
  enum class Kind { Map, Reduction, PerRow };

  /// The kind of the operation on such rows, whose results are whole rows or a value a row; none if it is none.
  std::optional<Kind> getKind(mlir::linalg::LinalgOp op) const;
  /// Whether of the operand, a result of another operation on the rows, each row alone is read or written.
  bool isOwnRow(mlir::OpOperand &operand) const;
  /// The same for an element of `source`, which the body reads at `indices`.
  bool isOwnRow(mlir::linalg::LinalgOp op, mlir::Value source, mlir::ValueRange indices) const;
  /// Whether the value has an element a row, and not a row of them.
  bool isPerRow(mlir::Value value) const;

  /// How many loops of the operation, the outer ones, lead from row to row.
  std::optional<unsigned> getRowLoops(mlir::linalg::LinalgOp op) const;
};

/// The value whose elements these are, in another shape.
mlir::Value getReshaped(mlir::Value value);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_ROWFORM_H

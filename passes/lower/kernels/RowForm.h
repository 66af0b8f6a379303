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
#ifndef DISTC_PASSES_LOWER_KERNELS_ROWFORM_H
#define DISTC_PASSES_LOWER_KERNELS_ROWFORM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace distc::schedule {

struct RowForm {
  /// A row is `columns` elements that lie side by side.
  int64_t rows, columns;

  /// The rows that an operation alone has: all of its loops but those that are reduced, or but the last one. None where
  /// they have less than two columns.
  static std::optional<RowForm> of(mlir::linalg::LinalgOp op);

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

  /// Whether it has an element for each of all rows' elements.
  bool hasRows(mlir::Value value) const;

  /// How many loops of the operation, the outer ones, lead from row to row.
  std::optional<unsigned> getRowLoops(mlir::linalg::LinalgOp op) const;

  /// Of an operation that sums columns, by parts of equally many rows that lie behind each other: the number of parts.
  /// Its results have an element for each column of each part.
  std::optional<int64_t> getColumnParts(mlir::linalg::LinalgOp op) const;
  /// Results of `ops` that are sums of columns by parts.
  int64_t countColumnSums(llvm::ArrayRef<mlir::linalg::GenericOp> ops) const;
};

/// How a row lies over the registers of its threads, of a warp or a part of one, or of a block. `vector` neighbours are
/// taken at once; a thread has `held` elements.
struct RowThreads {
  int64_t group, vector, held;

  explicit RowThreads(const RowForm &form);
  /// Whether `values` elements for each that is held fit the registers of a block of so many threads.
  bool holds(int64_t values, int64_t blockThreads) const;

  /// Of a block that has several rows.
  static constexpr int64_t kMinThreads = 128;
};

/// Whether the operation reduces its inner loops, those of a row.
bool reducesRows(mlir::linalg::LinalgOp op);

/// The value whose elements these are, in another shape.
mlir::Value getReshaped(mlir::Value value);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_KERNELS_ROWFORM_H

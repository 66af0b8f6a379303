//===- FixedBatch.h - A batch that the graph has as a number ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Where the placeholders' first size is a number, each replica is given so many rows,
// and N replicas do what the graph with N times the number would. Which of the graph's
// other numbers are the batch's is seen from what they meet:
//
//   rows    what has as many rows as the examples that it is combined with has a row for
//           each of them: it is drawn for them, or is alike in all rows (a fill). Where
//           it is neither, as positions in the batch, nothing is known of the result.
//   counts  what divides a sum over the batch and is its size, or that times the sizes of
//           other axes along which terms were added, is the number of terms; so is what
//           divides by as many as a value was broadcast to.
//
// A number is a constant, or what is computed of constants alone: `tf.shape(x)[0]` of a known shape is an element of
// one, `steps * tf.shape(x)[0]` a product of such.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDBATCH_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDBATCH_H

#include "dialects/dfg/NumberRange.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace distc {

class FixedBatch {
public:
  explicit operator bool() const { return size > 0; }

  /// The axis of a value that is the batch's; none where it has none, or that is not known.
  using AxisOf = llvm::function_ref<std::optional<int64_t>(mlir::Value)>;

  /// Whether `value` has the same for every row at its axis `axis`, or for every one within each of `segments` times
  /// the batch's size. Negative: it has no such axis.
  bool isAlikeAlong(mlir::Value value, int64_t axis, const dfg::ShapeContext &shapes,
                    llvm::ArrayRef<int64_t> segments = {}) const;

  /// A size, or a place in an axis that is the batch's, in terms of the batch: its number is one of its multiples.
  dfg::Dim asRows(dfg::Dim rows) const;
  /// The number that a size is.
  dfg::Dim asNumber(dfg::Dim rows) const;

  /// The constant, or what is computed of constants alone, that `value` is, also as another type; null where it is
  /// none.
  mlir::Value getConstant(mlir::Value value) const;
  /// Notes whether op's results are computed of constants alone, as they are now. Behind the nodes of its operands.
  void noteComputed(mlir::Operation *op, const dfg::ShapeContext &shapes);
  /// Whether `op` computes a constant of constants: what its numbers count shows where it is used.
  bool isComputed(mlir::Operation *op) const { return op->getNumResults() > 0 && computed.contains(op->getResult(0)); }
  /// Whether op's result has a row for each of the batch's: it makes rows, and they met the batch's.
  bool makesRows(mlir::Operation *op) const { return makers.contains(op); }
  /// Notes what makes the rows of `value`, which are combined with the batch's in `segments` (none: they are not known,
  /// or any will do).
  void noteRows(mlir::Value value, const dfg::ShapeContext &shapes, llvm::ArrayRef<int64_t> segments = {});
  /// The segments within which the rows that a constant makes are alike; none where all are.
  llvm::ArrayRef<int64_t> getSegments(mlir::Operation *maker) const {
    auto it = segmented.find(maker);
    return it == segmented.end() ? llvm::ArrayRef<int64_t>() : llvm::ArrayRef<int64_t>(it->second);
  }

  /// The same of the rows that `divisor` is a sum of, by which a sum over the batch is divided.
  void noteSummedRows(mlir::Value divisor, const dfg::ShapeContext &shapes);

  /// Whether the constant that `value` is counts the terms of a sum over the batch.
  bool counts(mlir::Value value) const { return counted.contains(getConstant(value)); }
  /// Whether it counts the copies of a gradient, and so what it divides elsewhere: `sum(loss / 8)`.
  bool countsCopies(mlir::Value value) const { return ofCopies.contains(getConstant(value)); }
  /// Whether it is one by such a number.
  bool isShare(mlir::Value value) const { return shared.contains(getConstant(value)); }
  /// The power of N by which the constant that `value` is is larger of the whole batch: what counts in one place is the
  /// same number in others. None where it is computed of such a one, and not known to be a power of it.
  std::optional<int> getScale(mlir::Value value) const;
  /// The nodes of `block` that draw numbers with as many rows as the batch has, or a multiple of it, without having
  /// been seen to make the batch's rows or to be of something else: of a variable of that size that they are combined
  /// with, element by element, or of features that a matmul adds up.
  llvm::SmallVector<mlir::Operation *> findUnseenDraws(mlir::Block &block, const dfg::ShapeContext &shapes) const;

  /// Notes that `divisor` counts terms of `sum`, if it is the batch's size, or that times sizes of other axes along
  /// which it is a sum, and these alone give no such number; of a factor that it is one by such a number.
  void noteCount(mlir::Value sum, mlir::Value divisor, AxisOf axisOf);
  void noteShare(mlir::Value sum, mlir::Value factor, AxisOf axisOf);
  /// Notes that `divisor` counts the elements that each one of `dividend` was broadcast to along the batch, if it does
  /// and these are known to be its rows.
  void noteCopies(mlir::Value dividend, mlir::Value divisor, const dfg::ShapeContext &shapes);

  /// Notes that `divisor`, which counts copies along the batch, may as well count what each row of `sum` is a sum of.
  void noteOtherTerms(mlir::Value sum, mlir::Value divisor, AxisOf axisOf);
  /// Whether it is open what the constant counts.
  bool isAmbiguous(mlir::Value value) const { return ambiguous.contains(getConstant(value)); }

  /// Whether the constant that `value` is, which `op` multiplies or divides a sum over the batch by, may count its
  /// terms without having been seen to: no number of a gradient's own (of squares, of roots, of a mean over something
  /// else).
  bool mayCount(mlir::Operation *op, mlir::Value value) const;
  /// Whether the constant that `value` is is a multiple of the batch's size, or one by such a multiple, or no number.
  bool isOfBatch(mlir::Value value) const;
  /// The constant that `value` is, if it is the batch's size n, n - 1 or n / (n - 1), and was not seen to count terms;
  /// else null. (One by n may be the share of a moving average as well.)
  mlir::Operation *findSampleSize(mlir::Value value) const;
  /// The constant that `value` is, if it is the batch's size, or one by it, and was not seen to count terms; else null.
  mlir::Operation *findSize(mlir::Value value) const;

  /// The constant that `value` is, which `op` multiplies or divides by, if it is the batch's size and was not seen to
  /// count terms; else null.
  mlir::Operation *findRows(mlir::Operation *op, mlir::Value value) const;
  /// Whether `op`, a sum along the first axis, adds up as many copies of something as there are rows.
  bool addsCopies(mlir::Operation *op, const dfg::ShapeContext &shapes) const;

  /// The constant that `value` is, if it is computed of the first size of a shape, which is the batch's, and was not
  /// seen to count terms or to be rows; else null.
  mlir::Operation *findTaken(mlir::Value value) const;

  /// The constant that `predicate` is, if it is computed of the first size of a shape and may be another one of some
  /// number of times the rows; else null.
  mlir::Operation *findDecision(mlir::Value predicate) const;

  /// The constant that `value` is, if it counts terms; else null.
  mlir::Operation *findCount(mlir::Value value) const;

  /// The rows of each replica; 0 where the batch is open.
  int64_t size = 0;
  /// What is looked for: one thing after the other, for what a count makes a mean is no sum that another number counts.
  enum Question { Rows, Counts, Shares } question = Rows;
  /// Whether something was noted since, which other nodes may depend on.
  bool learned = false;

private:
  /// What is computed of constants.
  struct Computed {
    std::optional<double> number; // that all its elements are
    bool mayBeRows = true;        // whether it may have the batch's size in it
    bool isTaken = false;         // whether it has the first size of a shape in it, which is a multiple of the batch's
    bool isOfRows = false;        // whether it may have in any other way: as a product of sizes
    bool hasRowsFirst = false;    // a vector that has it in its first element alone
  };
  dfg::NumberRange getRange(mlir::Value value, int depth) const;
  bool isOfConstants(mlir::Value value) const;
  bool isRowsOfReshape(mlir::Value value, const dfg::ShapeContext &shapes) const;
  bool mayBeRows(mlir::Value constant) const;
  bool hasRowsFirst(mlir::Value vector) const;
  std::optional<double> getNumber(mlir::Value constant) const;
  void collectFactors(mlir::Value value, bool divides,
                      llvm::SmallVectorImpl<std::pair<mlir::Value, bool>> &factors) const;
  bool isCount(mlir::Value sum, double number, AxisOf axisOf) const;
  bool isOfFewRows(mlir::Operation *op, double number) const;
  bool isOfGradient(mlir::Operation *op, mlir::Value two) const;
  bool countsTerms(mlir::Value constant, mlir::Value sum, bool isShare, AxisOf axisOf);
  /// Of `fewest` rows and more: a batch of fewer has its size's number everywhere.
  mlir::Operation *findNumber(mlir::Value value, llvm::function_ref<bool(double)> is, int64_t fewest = 4) const;
  bool isAlongBatch(mlir::Value value, mlir::Value copies) const;

  llvm::DenseSet<mlir::Operation *> makers;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t, 2>> segmented;
  llvm::DenseMap<mlir::Value, Computed> computed;
  llvm::DenseSet<mlir::Value> counted, shared, ofCopies, ambiguous; // as getConstant gives them
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_FIXEDBATCH_H

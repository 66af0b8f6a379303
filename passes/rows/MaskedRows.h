//===- MaskedRows.h - Rows whose number data decide, kept in place -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// `Where` and `DynamicPartition` choose rows, and how many these are is known when
// the program runs. Here all rows keep their places, and a mask says which of them
// are there: what works row by row is as it was, a sum over the rows adds those that
// are there, a mean divides by their number, an index that is not there is -1.
//
// Proven, node by node, is that a value's rows are those that the original node would
// have, in their order, at the places where the mask is set. What no rule is for is
// refused at its node. As a size, of a tensor that is filled or tiled, the number of
// rows is that of all; what is computed from it as a number takes the true one.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_ROWS_MASKEDROWS_H
#define DISTC_PASSES_ROWS_MASKEDROWS_H

#include "dialects/dfg/GraphBuilder.h"
#include "passes/distribute/flow/BatchAxis.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <memory>

namespace distc {

/// What is asked of an element of a tensor, whose elements the rows are in row-major order: it is set, or it equals a
/// constant; or it is, or does, not. Two masks that ask the same of the same elements choose the same rows.
struct RowCondition {
  mlir::Value of;
  std::optional<double> equals;
  bool isNegated = false;
};

/// Some of the rows of a tensor.
struct Selection {
  /// A bool a row.
  mlir::Value mask;
  /// How many rows there are with and without those that are not there: a multiple of the batch, or of a partition any
  /// number that follows from it.
  dfg::Dim rows;
  /// The rows that were chosen from; null: all.
  const Selection *among = nullptr;
  /// What the mask was made of, as errors say it.
  mlir::Value origin;
  /// Which rows of `among` are there, where that is known as a condition of each.
  RowCondition condition;
  /// The parts of a partition: each row of `among` is in one.
  llvm::SmallVector<const Selection *> parts;
  /// Rows that are one in the original graph may stand here as often as they are met; nothing may be summed up or
  /// counted over them.
  bool repeats = false;
  /// All rows are there.
  bool isAll = false;
  /// The rows that are there come first: their numbers are their places.
  bool isPrefix = false;
  /// Of each row of the grid that it was made for something is there.
  bool fillsGrid = false;
  /// The rows of a batch that has fewer than others (`dfg-pad-batch`). A fetch may have all of them, since who asks for
  /// it knows how many there are, and numbers are drawn for all.
  bool isBatch = false;
  /// An axis of its rows and what lies before and behind it became one: these are `outer` times its rows, each of which
  /// is so many of these, behind each other.
  const Selection *of = nullptr;
  int64_t outer = 1;

  const Selection *getWhole() const { return of ? of : this; }
  bool isOfBatch() const { return rows.isMultipleOfBatch(); }
  /// The axis, as replicas have it, of rows of the batch.
  BatchAxis getAxis(int64_t axis) const {
    return {axis, llvm::SmallVector<int64_t, 1>(static_cast<size_t>(outer), rows.getScale() / outer), false};
  }
};

/// What the elements of a tensor of indices are.
struct RowNumbers {
  enum Kind {
    Unknown,
    Coordinates,     // along the last axis: where the row lies in the grid
    FirstCoordinate, // the same, but of the first coordinate alone it is said
    Coordinate,      // one of them
    Combination,     // a sum of them, each times its factor
    Number           // of the row, among those of `among`, or in the grid
  };
  Kind kind = Unknown;
  int64_t column = 0;
  const Selection *among = nullptr;
  /// Of coordinates: the shape of what was chosen from, whose elements the rows are in row-major order.
  dfg::Dims grid = {};
  llvm::SmallVector<int64_t, 4> factors = {};

  /// Coordinates that are one number, which is that of the row.
  bool isVector() const { return among || grid.size() == 1; }
};

struct MaskedValue {
  const Selection *rows = nullptr;
  int64_t axis = 0;
  RowNumbers numbers;
  /// Terms of a sum over the rows that repeat: only what is linear may be made of each.
  bool areTerms = false;
};

/// Numbers of rows, each as often as its length says.
struct RowRepeat {
  mlir::Value data, lengths;
};

/// `op` runs behind the node of that name.
void runBehind(mlir::Operation *op, mlir::StringAttr name);
/// How many elements there are; unknown where two sizes depend on the batch.
dfg::Dim product(llvm::ArrayRef<dfg::Dim> sizes);
/// Whether the operation gives as many elements as data say, and is taken for another here.
bool choosesRows(mlir::Operation *op);

/// Rewrites the nodes of a graph that `needed` holds.
class RowMasker {
public:
  using Value = mlir::Value;
  using Operation = mlir::Operation;

  RowMasker(dfg::GraphOp graph, const llvm::DenseSet<Operation *> &needed) : graph(graph), needed(needed) {}
  /// Fails with a diagnostic at a node that has no rule.
  llvm::LogicalResult run();

private:
  using Builder = dfg::GraphBuilder;

  llvm::LogicalResult visit(Operation *op);
  void eraseUnneeded();
  llvm::LogicalResult checkFetches();
  llvm::LogicalResult refuse(Operation *op, const llvm::Twine &why);
  const MaskedValue *getMasked(Value value) const {
    auto it = masked.find(value);
    return it == masked.end() ? nullptr : &it->second;
  }
  bool isMasked(Value value) const { return masked.contains(value); }
  /// The result is `value` from here on, whose rows are masked by `rows`, or all there where it is null.
  llvm::LogicalResult replace(Builder &g, mlir::OpResult result, Value value, MaskedValue rows = MaskedValue());

  // Selections (Selections.cpp).
  const Selection *add(Selection selection);
  llvm::LogicalResult selectWhere(Operation *op);
  llvm::LogicalResult subtractSizes(Operation *op);
  llvm::LogicalResult selectParts(dfg::DynamicPartitionOp op);
  bool isNumberOfData(Value count) const;
  llvm::LogicalResult selectLargest(dfg::TopKV2Op op);
  const Selection *findPartition(Builder &g, Value parts, const Selection *among, int64_t count);
  const Selection *divide(Builder &g, const Selection *rows, dfg::Dim size, int64_t outer = 1);
  const Selection *reshapeRows(Operation *op, const MaskedValue &from, const BatchAxis &to);
  const Selection *getNonEmptyPrefix(Builder &g, const Selection *rows, const dfg::Dims &grid);
  Value getCount(Builder &g, const Selection *rows, mlir::Type element);
  Value numberRows(Builder &g, const Selection *rows, mlir::Type element);
  Value keep(Builder &g, Value value, const MaskedValue &rows, Value otherwise);
  Value keep(Builder &g, Value value, const MaskedValue &rows, double otherwise);
  Value keepIndices(Builder &g, Value indices, const MaskedValue &rows);
  mlir::StringAttr check(Builder &g, Value condition, Value shown);
  bool isRange(Value value, dfg::Dim rows) const;

  // Masks that choose the same rows (RowConditions.cpp).
  bool haveSameElements(Value x, Value y, int depth = 8) const;
  RowCondition getCondition(Value mask) const;
  RowCondition getCondition(Value parts, int64_t part) const;
  const Selection *findSelection(const RowCondition &condition, const Selection *among, dfg::Dim rows) const;
  bool areOneChoice(Operation *op, const Selection *rows, const Selection *others);

  // Ragged rows (MaskedRepeats.cpp).
  void findRepeats();
  std::optional<dfg::Dims> getGridOfLengths(const Selection *rows, Value lengths, dfg::Dim *bound) const;
  llvm::LogicalResult repeatByLengths(Operation *op, const RowRepeat &repeat);

  // Sizes (MaskedSizes.cpp).
  llvm::LogicalResult visitSizes(Operation *op);
  llvm::LogicalResult fillRows(Operation *op);
  bool isOfBatch(Operation *op) const;
  Value makeExact(Builder &g, Value value);
  llvm::SetVector<const Selection *> getSelections(Operation *op) const;

  // Operations on masked rows (MaskedRows.cpp).
  llvm::LogicalResult visitMasked(Operation *op);
  llvm::LogicalResult passOverErrors(Operation *op);
  llvm::LogicalResult visitByAxis(Operation *op);
  llvm::LogicalResult visitOtherRows(Operation *op);
  llvm::LogicalResult noteShapes(Operation *op);
  llvm::LogicalResult mean(Operation *op);
  llvm::LogicalResult reduce(Operation *op);
  llvm::LogicalResult scan(Operation *op);
  llvm::LogicalResult concat(Operation *op);
  llvm::LogicalResult update(Operation *op);
  bool takeAsWhole(Operation *op, const Selection *rows);
  RowNumbers followNumbers(Operation *op, mlir::OpResult result);
  RowNumbers combineNumbers(Operation *op, mlir::OpResult result);

  // Rows by index (MaskedIndices.cpp).
  llvm::LogicalResult gather(Operation *op);
  llvm::LogicalResult gatherNd(Operation *op);
  llvm::LogicalResult unsortedSegment(Operation *op);
  llvm::LogicalResult segments(Operation *op);
  llvm::LogicalResult scatterNd(Operation *op);
  llvm::LogicalResult tensorScatter(Operation *op);
  llvm::LogicalResult stitch(Operation *op);
  llvm::LogicalResult unique(Operation *op);
  llvm::LogicalResult repeatRows(Operation *op);
  bool isLookedUp(Value distinct) const;
  void findSeen();
  const Selection *getRowsByPlace(Builder &g, const llvm::SetVector<const Selection *> &counted,
                                  const std::optional<dfg::Dims> &sizes);
  bool isVectorOfRows(Value value) const;
  bool isLinearInTerms(Operation *op) const;
  Value spread(Builder &g, Value value, const dfg::Dims &grid);
  Value onGrid(Builder &g, Value value, const dfg::Dims &grid);

  // Sparse tensors (MaskedSparse.cpp).
  std::optional<dfg::Dims> getAllPlaces(Value value) const;
  llvm::LogicalResult reshapeSparse(Operation *op);
  llvm::LogicalResult fillEmptyRows(Operation *op);
  llvm::LogicalResult segmentsGrad(Operation *op);

  dfg::GraphOp graph;
  const llvm::DenseSet<Operation *> &needed;
  /// What the loss and the fetches are computed of.
  llvm::DenseSet<Operation *> seen;
  dfg::ShapeContext shapes;
  llvm::DenseMap<Value, MaskedValue> masked;
  /// Shape arithmetic that sees how many rows there are, and whose.
  llvm::DenseMap<Value, llvm::SetVector<const Selection *>> sized;
  llvm::DenseMap<Value, Value> exact;
  llvm::SmallVector<std::unique_ptr<Selection>> selections;
  llvm::DenseMap<const Selection *, llvm::SmallVector<std::pair<dfg::Dims, const Selection *>, 1>> prefixes, filled;
  llvm::DenseMap<std::pair<const Selection *, mlir::Type>, Value> counts;
  llvm::DenseMap<std::pair<const Selection *, std::pair<int64_t, int64_t>>, const Selection *> divided;
  /// The node that ends the program where some of the rows are not there.
  llvm::DenseMap<const Selection *, mlir::StringAttr> complete;
  llvm::SmallVector<Operation *> unneeded;
  /// Rows behind each other, of selections or (null) all of as many.
  struct Join {
    llvm::SmallVector<const Selection *> parts;
    dfg::Dims sizes;
    const Selection *joined;
  };
  llvm::SmallVector<Join> joins;
  llvm::DenseMap<Operation *, RowRepeat> repeats;
  llvm::DenseSet<Operation *> ofRepeats;
};

} // namespace distc

#endif // DISTC_PASSES_ROWS_MASKEDROWS_H

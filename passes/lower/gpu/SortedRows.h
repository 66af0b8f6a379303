//===- SortedRows.h - Rows by index, sorted for threads ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Threads write rows that indices name in no order, so an index that occurs
// several times needs one. It comes from sorting: indices with their positions,
// equal ones in the order of positions. What belongs to a row is then a segment,
// which one thread an element of the row goes through.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_SORTEDROWS_H
#define DISTC_PASSES_LOWER_GPU_SORTEDROWS_H

#include "dialects/drt/Drt.h"
#include "passes/lower/gpu/DeviceLaunches.h"

namespace distc {

/// Keys in their order, equal ones in that of their positions: `tensor<2 x count x word>`, first the keys, then the
/// position of each before.
struct Sorted {
  mlir::Value tensor;
  int64_t count = 0;

  mlir::Type getWord() const { return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType(); }
};

/// The parts of a sorted tensor that belong to rows: that of row r is from `bounds`[r] to before `bounds`[r + `ends`].
struct Segments {
  Sorted sorted;
  mlir::Value bounds;
  int64_t ends = 1;
};

/// Makes the launches at a builder's place.
class RowSorter {
public:
  using Value = mlir::Value;
  /// Makes the key of position `at` of the operand's buffer.
  using KeyFn = llvm::function_ref<Value(ThreadWriter &, Value buffer, Value at)>;

  explicit RowSorter(DeviceLaunches &launches) : launches(launches) {}

  /// Sorts `count` keys of type `word`, one or more. `key` follows from its name, the parameters, and the types of
  /// operand and keys.
  Sorted sort(mlir::ImplicitLocOpBuilder &b, llvm::StringRef name, Value operand, int64_t count, mlir::Type word,
              llvm::ArrayRef<int64_t> parameters, KeyFn key);
  /// Keys are numbers of rows: of `sizes`, the first axes of a tensor, in row-major order. -1 is what names no row.
  /// There is an index.
  Sorted sortIndices(mlir::ImplicitLocOpBuilder &b, Value indices, llvm::ArrayRef<int64_t> sizes);
  /// The segments of the rows.
  Segments getSegments(mlir::ImplicitLocOpBuilder &b, Value indices, llvm::ArrayRef<int64_t> sizes);
  /// Replaces drt.unique, whose segments are known then: those that its `idx` names.
  void replaceUnique(drt::UniqueOp op);
  /// Whether the indices are the values of a drt.unique that was replaced.
  bool isDistinct(Value indices) const;

  /// The number of the row that the index at position `at` names, as `word`; -1 where it names none.
  static Value writeRow(ThreadWriter &w, Value indices, Value at, llvm::ArrayRef<int64_t> sizes, mlir::Type word);

private:
  Sorted sortTiles(mlir::ImplicitLocOpBuilder &b, llvm::StringRef name, Value operand, int64_t count, mlir::Type word,
                   int64_t tile, llvm::ArrayRef<int64_t> parameters, KeyFn key);
  Sorted merge(mlir::ImplicitLocOpBuilder &b, Sorted runs, int64_t length, int64_t runsEach);
  /// Of each position, how many before it are marked, as levels to be added (see `writePrefix`), and last how many
  /// there are. Marked is position p where `first`[p] = p.
  llvm::SmallVector<Value> countMarked(mlir::ImplicitLocOpBuilder &b, Value first, int64_t count);
  static Value writePrefix(ThreadWriter &w, mlir::ValueRange levels, Value at);

  DeviceLaunches &launches;
  llvm::DenseMap<Value, Segments> known; // by the tensor of indices, which name rows of a vector of their length
  llvm::DenseSet<Value> distinct;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_SORTEDROWS_H

//===- TermCounts.h - How many terms a sum has ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_TERMCOUNTS_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_TERMCOUNTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <set>

namespace distc {

/// Whether numbers differ by no more than how they are rounded.
bool isNear(double x, double y);

/// The numbers that terms of a sum may be counted by: those of products of some of the axes along which they were
/// added.
struct TermCounts {
  std::set<int64_t> ofRows;       // with the batch's axis
  std::set<int64_t> others = {1}; // without it

  bool contains(int64_t count) const { return ofRows.count(count) || others.count(count); }
  /// Whether `number` is one of them that has the batch's axis in it, and none without.
  bool isOfRows(double number) const;
};

/// Counts the terms of sums, each once.
class TermCounter {
public:
  /// The batch's axis of a value; none where it has none.
  using AxisOf = llvm::function_ref<std::optional<int64_t>(mlir::Value)>;

  TermCounter(int64_t rows, AxisOf axisOf) : rows(rows), axisOf(axisOf) {}

  TermCounts count(mlir::Value sum, int depth = kMaxDepth) {
    auto [it, isNew] = known.try_emplace(sum);
    if (!isNew)
      return it->second;
    TermCounts counts = find(sum, depth);
    known[sum] = counts;
    return counts;
  }

private:
  /// How far back terms are followed.
  static constexpr int kMaxDepth = 64;

  TermCounts find(mlir::Value sum, int depth);
  void addSummands(mlir::Value sum, TermCounts &counts, int depth);
  TermCounts addAxes(mlir::Value terms, mlir::Value sum, int depth);

  int64_t rows;
  AxisOf axisOf;
  llvm::DenseMap<mlir::Value, TermCounts> known;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_TERMCOUNTS_H

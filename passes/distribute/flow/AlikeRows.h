//===- AlikeRows.h - Values whose rows are alike ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_ALIKEROWS_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_ALIKEROWS_H

#include "dialects/dfg/ShapeContext.h"
#include <optional>

namespace distc {

/// Answers about values, each found once. `runs`: how many indices, one behind the other, are to be alike, for each
/// such run; none where all along an axis are.
class AlikeRows {
public:
  explicit AlikeRows(const dfg::ShapeContext &shapes, llvm::ArrayRef<int64_t> runs = {}) : shapes(shapes), runs(runs) {}

  /// Whether `value` has the same for every index along `axis`, or no such axis.
  bool isAlike(mlir::Value value, int64_t axis, int depth = kMaxDepth) {
    auto [it, isNew] = alike.try_emplace({value, axis}, false);
    if (!isNew)
      return it->second;
    bool found = findAlike(value, axis, depth);
    alike[{value, axis}] = found;
    return found;
  }

private:
  /// How far back rows are followed.
  static constexpr int kMaxDepth = 64;

  /// Whether all elements of `value` are the same, which moving them does not change.
  bool isSplat(mlir::Value value, int depth) {
    auto [it, isNew] = splats.try_emplace(value, false);
    if (!isNew)
      return it->second;
    bool found = findSplat(value, depth);
    splats[value] = found;
    return found;
  }

  bool findSplat(mlir::Value value, int depth);
  bool findAlike(mlir::Value value, int64_t axis, int depth);
  bool isJoinedOfRuns(mlir::Operation *op, int64_t axis, int depth) const;

  const dfg::ShapeContext &shapes;
  llvm::SmallVector<int64_t> runs;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, bool> alike;
  llvm::DenseMap<mlir::Value, bool> splats;
};

/// Runs that begin and end where `size` of them, from `begin` on, do; none where one goes on beyond.
std::optional<llvm::SmallVector<int64_t>> cutRuns(llvm::ArrayRef<int64_t> runs, int64_t begin, int64_t size);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_ALIKEROWS_H

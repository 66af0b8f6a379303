//===- Shards.h - Which variables are split, and how --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDS_H
#define DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDS_H

#include "dialects/dfg/Dfg.h"
#include "strategies/Partition.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// A variable that is split: one that the strategy partitions, or a slot of one.
struct ShardedVariable {
  std::string name;
  mlir::RankedTensorType type;
  strategies::Partition partition;
  /// The strategy's entry that splits it.
  const strategies::Strategy::Node *entry = nullptr;

  int64_t getCount() const { return partition.getCount(); }
  mlir::RankedTensorType getShardType(int64_t shard) const;
  /// "w/part_1"
  std::string getShardName(int64_t shard) const { return strategies::getShardName(name, shard); }
  /// Where the shard begins, along each axis.
  llvm::SmallVector<int64_t> getOffsets(int64_t shard) const;
};

/// The split variables of a module.
class Shards {
public:
  /// What `strategy`, which must outlive the result, partitions and the training step updates, with its slots. Fails
  /// with a diagnostic at the variable that cannot be split.
  static llvm::FailureOr<Shards> find(mlir::ModuleOp module, const strategies::Strategy &strategy);

  bool empty() const { return variables.empty(); }
  /// Null where the variable stays whole.
  const ShardedVariable *find(llvm::StringRef variable) const;
  auto begin() const { return variables.begin(); }
  auto end() const { return variables.end(); }

private:
  llvm::LogicalResult addEntries(mlir::ModuleOp module, const strategies::Strategy &strategy);
  llvm::LogicalResult addSlots(mlir::ModuleOp module);

  /// By name, in the strategy's order, slots last.
  llvm::MapVector<mlir::StringAttr, ShardedVariable> variables;
  llvm::StringMap<mlir::StringAttr> names;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDS_H

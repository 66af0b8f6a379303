//===- ShardRewriter.h - One block's uses of split variables ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDREWRITER_H
#define DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDREWRITER_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/partition/Shards.h"
#include "passes/distribute/partition/WholeValues.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/SetVector.h"

namespace distc {

/// Rewrites the graph, or a function's body: what named a split variable names its shards. The names of the nodes that
/// are split stay, as those of what joins the shards' values or waits for all of them.
class ShardRewriter {
public:
  ShardRewriter(mlir::Block &block, const Shards &shards, WholeValues &wholeValues);

  /// Fails with a diagnostic at what cannot be split.
  llvm::LogicalResult run();

private:
  using Parts = llvm::SmallVector<mlir::Value>;

  const ShardedVariable *find(mlir::Value handle) const;
  mlir::Value getShardHandle(mlir::Value handle, int64_t shard) const;
  void splitHandle(dfg::VarHandleOp handle);
  llvm::LogicalResult rewrite(mlir::Operation *op);
  void splitRead(dfg::ReadVariableOp read, const ShardedVariable &variable);
  void readReferences(dfg::OpaqueOp op);
  void nameShape(dfg::VariableShapeOp op, const ShardedVariable &variable);
  void splitIsInitialized(dfg::IsInitializedOp op, const ShardedVariable &variable);
  llvm::LogicalResult splitUpdate(dfg::UpdateInterface update, const ShardedVariable &variable);
  void findInitialAssigns();
  mlir::Value readWhole(mlir::Operation *op, mlir::Value handle, const ShardedVariable &variable);
  llvm::LogicalResult passWhole(mlir::Operation *op);
  void gatherWhole(dfg::ResourceGatherNdOp gather, const ShardedVariable &variable);
  void rewriteReferences();
  void colocate(mlir::Operation *op, int64_t shard);

  // ---- Values (ShardValues.cpp) --------------------------------------------------------
  /// Parts of a value of the variable's shape, or of rows of it, along `axis`.
  Parts split(mlir::Value value, int64_t axis, const ShardedVariable &variable);
  Parts split(mlir::Value value, const ShardedVariable &variable) {
    return split(value, variable.partition.axis, variable);
  }
  Parts splitConstant(dfg::ConstOp constant, mlir::SplatElementsAttr splat,
                      llvm::ArrayRef<mlir::RankedTensorType> types, const ShardedVariable &variable);
  mlir::Value join(mlir::Location loc, llvm::ArrayRef<mlir::Value> parts, const ShardedVariable &variable);
  /// For a read that is no node.
  mlir::Value joinUnnamed(mlir::Value handle, llvm::ArrayRef<mlir::Value> parts, const ShardedVariable &variable);
  mlir::Value getConstant(mlir::DenseElementsAttr elements);

  // ---- Rows (ShardRows.cpp) --------------------------------------------------------------
  /// Of a sparse gradient, what belongs to each shard.
  llvm::LogicalResult splitRows(dfg::UpdateInterface update, const ShardedVariable &variable, Parts &indices,
                                Parts &values);
  llvm::LogicalResult splitGather(dfg::ResourceGatherOp gather, const ShardedVariable &variable);
  /// Those that take rows of what `read` gives (reference variables are looked up so) take them of the shards' values.
  void splitGathers(dfg::ReadVariableOp read, llvm::ArrayRef<mlir::Value> parts, const ShardedVariable &variable);
  /// What `gather`, by its operand 1, takes of the shards' handles or values.
  void takeRows(mlir::Operation *gather, llvm::ArrayRef<mlir::Value> sources, const ShardedVariable &variable);

  // ---- Savers (ShardSavers.cpp) ---------------------------------------------------------
  void splitRestore(dfg::OpaqueOp restore);
  void splitSave(dfg::OpaqueOp save);

  const ShardedVariable *findRestored(mlir::Value value, llvm::SmallVectorImpl<mlir::Operation *> &identities) const;

  /// `op` for a shard: named by the shard, colocated with shards.
  mlir::Operation *cloneForShard(mlir::Operation *op, const ShardedVariable &variable, int64_t shard);
  /// Nodes that are made of a variable at several places have names of their own: others may have to wait for them.
  std::string getUniqueSuffix(const ShardedVariable &variable, llvm::StringRef suffix);
  mlir::Location getSuffixed(mlir::Location loc, const llvm::Twine &suffix);

  mlir::Block &block;
  const Shards &shards;
  WholeValues &wholeValues;
  mlir::OpBuilder builder;
  /// Of each split handle (not of the identities of it), the shards'.
  llvm::DenseMap<mlir::Operation *, Parts> handles;
  /// Node names of the split handles, and how many shards they have.
  llvm::StringMap<int64_t> handleNames;
  /// Updates, and what runs behind one, as the block was.
  llvm::DenseSet<mlir::Operation *> behindUpdates;
  /// What the training step runs; of each split variable, what gives it its initial value.
  strategies::StepNodes step;
  llvm::StringMap<mlir::StringAttr> initialAssigns;
  /// What a split read gives, and the shards' values that it joins.
  struct Read {
    const ShardedVariable *variable;
    Parts parts;
  };
  llvm::DenseMap<mlir::Value, Read> reads;
  /// Those of reads that are no nodes.
  llvm::DenseSet<mlir::Value> unnamed;
  /// How many nodes were made of a name.
  llvm::StringMap<unsigned> numMade;
  /// Parts of values that were split already.
  struct Split {
    int64_t axis;
    const strategies::Partition *partition;
    Parts parts;
  };
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Split, 1>> splits;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::SetVector<mlir::Operation *> replaced;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_PARTITION_SHARDREWRITER_H

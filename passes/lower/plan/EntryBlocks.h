//===- EntryBlocks.h - What an entry has in the arena, and from when to when --*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_ENTRYBLOCKS_H
#define DISTC_PASSES_LOWER_PLAN_ENTRYBLOCKS_H

#include "dialects/drt/Drt.h"
#include "passes/lower/plan/ArenaPacking.h"

namespace distc {

/// Memory of an entry: a tensor that an operation writes, or a bucket with all its gradients. Its times are positions
/// of operations in the entry's block; what lives to the end of the entry ends at INT64_MAX. What other replicas read
/// lives until they are known to have done so.
struct EntryBlock : LiveBlock {
  /// The operation that writes the tensor, or the bucket's start.
  mlir::Operation *of = nullptr;
  unsigned result = 0; // of that operation
};

/// The blocks of one entry: one a tensor, one a bucket.
class EntryBlocks {
public:
  explicit EntryBlocks(drt::EntryOp entry);

  /// All of them, in the order of their tensors; bytes < 0: the tensor lies in a bucket's.
  llvm::ArrayRef<EntryBlock> getBlocks() const { return blocks; }
  /// The block that a tensor's memory lies in; null where it has none in the arena.
  const EntryBlock *find(mlir::Value storage) const;

  /// Places the blocks; returns the bytes that the entry needs.
  int64_t pack();
  /// Writes the places to the operations (`at`).
  void writePlaces();
  /// The blocks of an entry whose operations have places, in the order of their tensors.
  llvm::SmallVector<EntryBlock> readPlaces() const;

private:
  struct Position {
    size_t block;
    int64_t offset = 0; // in the block
  };

  void addBlock(mlir::Value value, int64_t position);
  void addBucket(drt::AllReduceStartOp bucket);
  void use(mlir::Value operand, int64_t until);
  int64_t getPlace(mlir::Value value);

  mlir::Block &body;
  llvm::DenseMap<mlir::Value, Position> positions;
  llvm::SmallVector<EntryBlock> blocks; // bytes < 0: the tensor lies in a bucket
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_ENTRYBLOCKS_H

//===- UpdateGroup.h - Updates of many variables as one kernel ---------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_UPDATEGROUP_H
#define DISTC_PASSES_LOWER_GPU_UPDATEGROUP_H

#include "dialects/drt/Drt.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/gpu/UpdateRule.h"

namespace distc {

/// Where an operand of a rule comes from.
struct UpdateOperand {
  enum Kind {
    Arena,     // an element for each of the variable's, at an offset from the arena's base
    Variables, // the same from the base of the block of variables
    Pointer,   // the same, at an address of its own
    Scalar,    // one element for all, at an address of its own
  };
  Kind kind;
  int64_t offset = 0; // Arena, Variables: in bytes
  /// What lies there; none for what the update names itself, its variables and its member of a bucket.
  mlir::Value tensor{};
  /// It has an element for each of the whole variable's, of which the update of a share takes its part.
  bool isWhole = false;
};

struct UpdateMember {
  drt::UpdateOp op;
  llvm::SmallVector<UpdateOperand> operands; // of the rule, in its order
};

/// Updates that one launch does: their rules are the same, and so are the kinds of their operands, the tensors of those
/// with an address of their own, the bucket, and whether they are of shares.
struct UpdateGroup {
  UpdateRule rule;
  double scale = 1; // of the gradient, the rule's first operand
  llvm::SmallVector<UpdateMember> members;

  /// Whether the replica updates its share of each.
  bool isOfShares() const;
  /// Elements of a share of each member.
  llvm::SmallVector<int64_t> getShares() const;
  /// Tensors with addresses of their own: the kernel's arguments behind the two bases, and behind the replica's number
  /// where it updates shares.
  llvm::SmallVector<mlir::Value> getArguments() const;
  /// Tensors of all members that the table names, from the bases.
  llvm::SmallVector<mlir::Value> getReads() const;
};

/// Sizes of what the kernel's first two arguments point to, in bytes.
struct MemorySizes {
  int64_t arena, variables;
};

/// Bytes of the table that the group's kernel reads.
int64_t getTableBytes(const UpdateGroup &group);

/// Writes the group's kernel, `gpu.func @name`, with its table; in constant memory where `constantTable`, else in
/// global memory.
void writeUpdateKernel(const UpdateGroup &group, mlir::ModuleOp module, llvm::StringRef name, MemorySizes sizes,
                       bool constantTable, mlir::Location loc);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_UPDATEGROUP_H

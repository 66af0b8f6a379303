//===- Frames.h - Control flow of version 1: kinds of nodes, frames of loops -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_FRAMES_H
#define DISTC_DIALECTS_DFG_FRAMES_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/MapVector.h"

namespace distc::dfg {

/// The operation's name in TensorFlow where it is `dfg.opaque`, without the prefix of its form for references
/// (RefSwitch); "" for any other operation, and for null.
llvm::StringRef getKind(mlir::Operation *op);

/// What runs in a loop of version 1, as TensorFlow's executor defines it ("The TensorFlow Partitioning and Subgraph
/// Execution System", and control_flow_ops.cc): Enter opens a frame, Exit leaves it, and whatever takes a value of a
/// frame, or waits for one of its nodes, is part of it.
struct Frame {
  std::string name;
  /// Of the loop around it; null for none.
  Frame *parent = nullptr;
  unsigned depth = 0;
  /// Enter and Exit among them, in the block's order.
  llvm::SmallVector<mlir::Operation *> nodes;
};

/// The frames of a block.
class Frames {
public:
  /// Fails with an error for a node that enters a frame that has no name, or that is another loop's.
  static llvm::FailureOr<Frames> find(mlir::Block &block);

  bool empty() const { return byName.empty(); }
  /// In the order in which they are entered.
  llvm::SmallVector<Frame *> getAll() const;
  /// The innermost frame that `op` is part of; null for none.
  Frame *lookup(mlir::Operation *op) const { return frameOf.lookup(op); }
  /// A node that is made takes part in `frame`, which may be null.
  void add(mlir::Operation *op, Frame *frame) { frameOf[op] = frame; }

private:
  llvm::MapVector<llvm::StringRef, std::unique_ptr<Frame>> byName;
  llvm::DenseMap<mlir::Operation *, Frame *> frameOf;
};

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_FRAMES_H

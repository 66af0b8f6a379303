//===- Kernel.h - A kernel of linalg operations, before it is scheduled -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_KERNEL_H
#define DISTC_PASSES_LOWER_GPU_KERNEL_H

#include "passes/lower/gpu/IterationSpace.h"
#include "llvm/ADT/SetVector.h"

namespace distc::schedule {

/// What `drt-outline-kernels` made: the operations of one function on buffers.
class Kernel {
public:
  /// Fails with a diagnostic where the function holds something that has no code on a GPU.
  static llvm::FailureOr<Kernel> get(drt::KernelOp function);

  drt::KernelOp function;
  /// Whether loops that data end run them: `ops` are those inside as well then, in no order, and nothing is `initial`.
  bool hasLoops = false;
  /// Without the fills of what another operation starts from.
  llvm::SmallVector<mlir::linalg::LinalgOp> ops;
  /// One for each of `ops`; none where addresses are not linear.
  std::vector<llvm::FailureOr<IterationSpace>> spaces;
  /// What a result starts from, where the kernel fills it first.
  llvm::DenseMap<mlir::Value, mlir::Value> initial;

  /// The only operation, if there is one and its addresses are linear.
  const IterationSpace *getOnlySpace() const;

  /// The buffers that some operation writes, in the order of the operations, by what they lie in.
  llvm::SetVector<mlir::Value> getWritten() const;
};

/// As many elements as 128 bits hold of the widest operand, 8 at most.
int64_t getVectorSize(mlir::linalg::LinalgOp op);

/// Whether the result has one element for all iterations of the reduction loops. One that has an element for each is
/// nothing that a thread can carry from iteration to iteration, or threads can join.
bool isReduced(mlir::linalg::LinalgOp op, mlir::OpOperand &result);

/// Whether some value of the operation's body is read from memory at a computed place.
bool readsByIndex(mlir::linalg::LinalgOp op);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_KERNEL_H

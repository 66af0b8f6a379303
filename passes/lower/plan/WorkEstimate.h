//===- WorkEstimate.h - How much an operation of an entry computes and moves --*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_WORKESTIMATE_H
#define DISTC_PASSES_LOWER_PLAN_WORKESTIMATE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace distc {

/// Those of an elementary function: a polynomial of about so many terms with the reduction of its argument.
inline constexpr int64_t kFunctionInstructions = 24;
/// What a region computes for an element, in instructions; an elementary function counts as those of its polynomial.
int64_t countInstructions(mlir::Region &region);

/// Of one replica, from shapes alone.
struct Work {
  int64_t flops = 0;    // scalar operations
  int64_t matmuls = 0;  // of these, the multiplications and additions of matmuls and convolutions
  int64_t bytes = 0;    // read and written, by each pass of a kernel over an operand
  int64_t least = 0;    // of these, what cannot be spared: each distinct operand and result once
  int64_t launches = 0; // of kernels, copies and library calls, on a device
};

/// What a machine does in a second, for times that can be compared with each other. Nobody measured it.
struct AssumedMachine {
  double flops, memoryBytes, sentBytes; // a second: of a replica; of a replica; between tasks
  double startSeconds;                  // of any operation
};
AssumedMachine getAssumedMachine(bool device);

/// Estimates the work of a module's operations.
class WorkEstimate {
public:
  explicit WorkEstimate(mlir::ModuleOp module);

  Work operator()(mlir::Operation *op);
  double getSeconds(const Work &work) const;
  const AssumedMachine &getMachine() const { return machine; }

private:
  struct Kernel {
    int64_t points = 0;                // of its loops, together
    int64_t whole = 0, ofElement = 0;  // instructions: of all loops; of a range kernel for one element
    llvm::SmallVector<int64_t> passes; // bytes of each argument that its loops go over, together
    llvm::SmallVector<int64_t> taken;  // elements of each that they take by index
  };
  /// Of the kernel that `op` runs; nothing where it runs none.
  Kernel getKernel(mlir::Operation *op);
  void addMemory(mlir::Operation *op, const Kernel &kernel, Work &work);
  /// Variables and slots that an update reads and writes, and its gradient. Returns the elements of the variables.
  int64_t addUpdated(mlir::Operation *op, Work &work);

  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Operation *, Kernel> kernels;
  bool onDevice;
  AssumedMachine machine;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_WORKESTIMATE_H

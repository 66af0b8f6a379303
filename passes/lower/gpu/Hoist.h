//===- Hoist.h - What a kernel reads moves in front of it -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Where an operation moves to an earlier one that it becomes a kernel with, what it reads must be there.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_HOIST_H
#define DISTC_PASSES_LOWER_GPU_HOIST_H

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace distc {

/// What does not depend on when it runs, or is a variable that nothing in between changes, may stand earlier.
class Hoist {
public:
  explicit Hoist(mlir::Operation *place) : place(place) {}

  /// Whether `value` is there at the place, or can be.
  bool isPossible(mlir::Value value);
  void move(mlir::Value value);

private:
  bool isUnchanged(drt::ReadOp read);

  mlir::Operation *place;
};

/// The values from outside of the body: operands, and those that it reads by index.
llvm::SetVector<mlir::Value> getUsed(mlir::linalg::GenericOp op);

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_HOIST_H

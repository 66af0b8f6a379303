//===- Equivalence.h - Operations that do the same ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_EQUIVALENCE_H
#define DISTC_PASSES_LOWER_KERNELS_EQUIVALENCE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

namespace distc {

/// A hash of what `op` does, its regions included: two operations that `isEquivalent` calls equal have the same. (That
/// of MLIR's CSE leaves regions out, so that all kernels that read the same value meet in one bucket.) Time is linear
/// in the operations inside.
llvm::hash_code hashOperation(mlir::Operation *op);
/// The same for the contents of a region. Values from outside count by identity, those of inside by their number.
llvm::hash_code hashRegion(mlir::Region &region);

/// Whether both compute the same from the same operands; locations do not count.
bool isEquivalent(mlir::Operation *a, mlir::Operation *b);

/// Operations by what they do, as keys.
struct EquivalenceInfo : llvm::DenseMapInfo<mlir::Operation *> {
  static unsigned getHashValue(const mlir::Operation *op) {
    return static_cast<size_t>(hashOperation(const_cast<mlir::Operation *>(op)));
  }
  static bool isEqual(const mlir::Operation *a, const mlir::Operation *b) {
    if (a == b || a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() || b == getTombstoneKey())
      return a == b;
    return isEquivalent(const_cast<mlir::Operation *>(a), const_cast<mlir::Operation *>(b));
  }
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_EQUIVALENCE_H

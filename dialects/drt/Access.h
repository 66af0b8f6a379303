//===- Access.h - How replicas share the memory of a plan -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DRT_ACCESS_H
#define DISTC_DIALECTS_DRT_ACCESS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "mlir/IR/ValueRange.h"

namespace distc::drt {

/// Which elements of a memory one replica accesses. Two replicas' parts are disjoint where they are cut alike, and the
/// cut is not `Whole`.
struct Extent {
  enum Cut : uint8_t {
    Whole,  // all elements, in every replica
    Range,  // rangeOf(count, replicas, index) of runtime/cpu/ranges.h; size: count
    Rows,   // blocks of rows by index (drt_sparse_update); size: elements of a row
    Matmul, // rows of a product over the joined batch (drt_matmul_update); size: the product's rows
    Share,  // elements from index * size on (drt_update_share)
  };
  Cut cut = Whole;
  int64_t size = 0;

  bool operator==(const Extent &) const = default;
  bool isDisjointFrom(const Extent &ofAnother) const { return cut != Whole && *this == ofAnother; }
};

/// One access of one replica. What is accessed is a tensor's memory, a variable's, or a bucket's: exactly one of the
/// three is set.
struct Access {
  bool writes = false;
  Extent extent;
  mlir::Value tensor;
  mlir::FlatSymbolRefAttr variable;
  int32_t bucket = -1;    // the contributions of all replicas, and the result that takes the place of one of them
  bool ofOthers = false;  // `tensor`: that of every replica of the task, not only the replica's own
  bool byRuntime = false; // done by the runtime when every replica has reached the operation, and until the wait for it
  int64_t owner = -1;     // made in the task of this number alone; -1: in every one
};

/// Reads of all tensors among `operands`.
llvm::SmallVector<Access> readWhole(mlir::ValueRange operands);

} // namespace distc::drt

#endif // DISTC_DIALECTS_DRT_ACCESS_H

//===- ShareTypes.h - Types of a variable's shares -----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_ENTRIES_SHARETYPES_H
#define DISTC_PASSES_LOWER_ENTRIES_SHARETYPES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace distc {

/// Changes the type of a handle or of a variable's value, and of what hands it on.
void retype(mlir::Value value, mlir::RankedTensorType type);

/// Gives the results of an update, which are handles, the type of its variable. In functions of the library a variable
/// is a resource of no type, and updates have no results.
void retypeResults(dfg::UpdateInterface update);

/// A replica's share of `whole` in a device's memory: flat, ceil(n / replicas) elements, rounded up so that each share
/// begins at a multiple of 16 bytes. Kernels make accesses of so many bytes, and NCCL copies in them.
mlir::RankedTensorType getDeviceShare(mlir::RankedTensorType whole, int64_t replicas);

} // namespace distc

#endif // DISTC_PASSES_LOWER_ENTRIES_SHARETYPES_H

//===- SameValues.h - Values that are computed alike ---------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_SAMEVALUES_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_SAMEVALUES_H

#include "mlir/IR/Value.h"

namespace distc {

/// Whether two values are computed alike from the same values, in a few steps.
bool areSame(mlir::Value x, mlir::Value y, int depth = 8);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_SAMEVALUES_H

//===- SameValues.h - Values that are computed alike ---------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SAMEVALUES_H
#define DISTC_DIALECTS_DFG_SAMEVALUES_H

#include "mlir/IR/Value.h"

namespace distc::dfg {

/// Whether two values are computed alike from the same values, in a few steps.
bool areSame(mlir::Value x, mlir::Value y, int depth = 8);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SAMEVALUES_H

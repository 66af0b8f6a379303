//===- ScalarRegion.h - What a region does with numbers -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_SCALARREGION_H
#define DISTC_DIALECTS_DFG_STABLEHLO_SCALARREGION_H

#include "mlir/IR/Region.h"
#include <optional>

namespace distc::stablehlo {

/// What a region of comparisons, choices and logic gives for `arguments`: one that only compares is known by what it
/// does for each order of its operands. None where it has another operation, or other arguments.
std::optional<llvm::SmallVector<double>> runScalarRegion(mlir::Region &region, llvm::ArrayRef<double> arguments);

/// Whether the value of the module counts along `axis`.
bool isPosition(mlir::Value value, int64_t axis);

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_SCALARREGION_H

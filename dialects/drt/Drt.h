//===- Drt.h - The runtime's dialect -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DRT_DRT_H
#define DISTC_DIALECTS_DRT_DRT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/drt/DrtDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/drt/DrtOps.h.inc"

namespace distc::drt {

/// On a `func.func`: it is an entry of the program; its value is the entry's name.
inline constexpr llvm::StringLiteral kEntryAttr = "drt.entry";
/// On a `func.func`: a kernel that `drt.launch` calls, or that `drt.update` calls on a range.
inline constexpr llvm::StringLiteral kKernelAttr = "drt.kernel";
inline constexpr llvm::StringLiteral kRangeKernelAttr = "drt.range_kernel";

} // namespace distc::drt

#endif // DISTC_DIALECTS_DRT_DRT_H

//===- ConstantFormat.h - The text of a constant's type ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_CONSTANTFORMAT_H
#define DISTC_DIALECTS_DFG_CONSTANTFORMAT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

namespace distc::dfg {

/// `: TYPE`, or nothing where it is the value's own, which stands there already.
mlir::ParseResult parseConstantType(mlir::OpAsmParser &parser, mlir::Type &type, mlir::ElementsAttr value);
void printConstantType(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type type, mlir::ElementsAttr value);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_CONSTANTFORMAT_H

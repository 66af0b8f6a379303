//===- AssemblyFormat.h - The text that most operations share ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
// `operands attr-dict : functional-type(operands, results)`, which ODS would write out as a parser and a printer for
// each of hundreds of operations. A dialect gives it to those of its operations that have no format of their own.
#ifndef DISTC_DIALECTS_ASSEMBLYFORMAT_H
#define DISTC_DIALECTS_ASSEMBLYFORMAT_H

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

namespace distc {

inline mlir::ParseResult parseOperandsAndAttributes(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SMLoc operandsAt = parser.getCurrentLocation();
  if (parser.parseOperandList(operands))
    return mlir::failure();
  llvm::SMLoc attributesAt = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(result.attributes) || failed(result.name.verifyInherentAttrs(result.attributes, [&] {
        return parser.emitError(attributesAt) << "'" << result.name.getStringRef() << "' op ";
      })))
    return mlir::failure();
  mlir::FunctionType type;
  if (parser.parseColon() || parser.parseType(type))
    return mlir::failure();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), operandsAt, result.operands);
}

/// The attributes of `op` that an operation of its name has where none are given: they are not printed.
inline llvm::SmallVector<llvm::StringRef> findDefaults(mlir::Operation *op) {
  llvm::SmallVector<llvm::StringRef> names;
  mlir::OperationName name = op->getName();
  if (name.getOpPropertyByteSize() == 0)
    return names;
  mlir::Operation *untouched =
      mlir::Operation::create(op->getLoc(), name, {}, {}, mlir::NamedAttrList(), nullptr, {}, 0);
  name.populateDefaultProperties(untouched->getPropertiesStorage());
  for (mlir::NamedAttribute attribute : untouched->getAttrs())
    if (op->getAttr(attribute.getName()) == attribute.getValue())
      names.push_back(attribute.getName());
  untouched->destroy();
  return names;
}

inline void printOperandsAndAttributes(mlir::Operation *op, mlir::OpAsmPrinter &printer) {
  if (op->getNumOperands() > 0)
    printer << ' ' << op->getOperands();
  printer.printOptionalAttrDict(op->getAttrs(), findDefaults(op));
  printer << " : ";
  printer.printFunctionalType(op);
}

/// What a dialect's `getParseOperationHook` returns: nothing for a name that it has no operation of.
inline std::optional<mlir::Dialect::ParseOpHook> getSharedParser(llvm::StringRef name, mlir::MLIRContext *context) {
  if (!mlir::RegisteredOperationName::lookup(name, context))
    return std::nullopt;
  return mlir::Dialect::ParseOpHook(parseOperandsAndAttributes);
}

} // namespace distc

#endif // DISTC_DIALECTS_ASSEMBLYFORMAT_H

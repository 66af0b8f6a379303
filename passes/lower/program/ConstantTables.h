//===- ConstantTables.h - Constant data of the generated object ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_CONSTANTTABLES_H
#define DISTC_PASSES_LOWER_PROGRAM_CONSTANTTABLES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// Writes C structures as constant globals of the LLVM dialect. A field is an attribute: an integer, an address (a
/// FlatSymbolRefAttr of a global or a function), a nested structure (an ArrayAttr), or null (a UnitAttr). Equal strings
/// and arrays are one global.
class ConstantTables {
public:
  explicit ConstantTables(mlir::ModuleOp module);

  mlir::Attribute null() { return builder.getUnitAttr(); }
  mlir::Attribute i32(int64_t value) { return builder.getI32IntegerAttr(value); }
  mlir::Attribute i64(int64_t value) { return builder.getI64IntegerAttr(value); }
  mlir::Attribute structure(llvm::ArrayRef<mlir::Attribute> fields) { return builder.getArrayAttr(fields); }
  mlir::Attribute function(llvm::StringRef name) { return mlir::FlatSymbolRefAttr::get(builder.getContext(), name); }

  /// A pointer to a string, zero-terminated.
  mlir::FlatSymbolRefAttr string(llvm::StringRef text);
  /// A pointer to data that no other shares, aligned for any type.
  mlir::FlatSymbolRefAttr bytes(llvm::StringRef name, llvm::StringRef data);
  /// A pointer to an array of int64_t; null where it is empty.
  mlir::Attribute numbers(llvm::ArrayRef<int64_t> numbers);
  /// A pointer to an array of structures of one type; null where it is empty.
  mlir::Attribute array(llvm::StringRef name, mlir::Type row, llvm::ArrayRef<mlir::Attribute> rows);
  /// A structure with a linkage of its own.
  void global(llvm::StringRef name, mlir::LLVM::Linkage linkage, mlir::Type type, mlir::Attribute value);
  /// A descriptor; equal ones are one.
  mlir::FlatSymbolRefAttr descriptor(mlir::Type type, mlir::Attribute value);

  /// A structure of C; types are ptr, i32, i64 and structures.
  mlir::Type structType(llvm::ArrayRef<mlir::Type> fields);
  mlir::Type ptr, int32, int64;

private:
  mlir::Value emit(mlir::Type type, mlir::Attribute value);
  mlir::Value emitRows(mlir::Type row, llvm::ArrayRef<mlir::Attribute> rows);
  mlir::Value insertAll(mlir::Type type, llvm::ArrayRef<mlir::Value> parts);

  mlir::OpBuilder builder; // at the module's end, or in a global's initializer
  mlir::Location loc;
  llvm::StringMap<std::string> strings;
  llvm::DenseMap<mlir::Attribute, std::string> arrays;
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, std::string> descriptors;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_CONSTANTTABLES_H

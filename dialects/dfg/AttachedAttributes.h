//===- AttachedAttributes.h - A dialect's attributes on other operations -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_ATTACHEDATTRIBUTES_H
#define DISTC_DIALECTS_DFG_ATTACHEDATTRIBUTES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace distc::dfg {

/// A discardable attribute of a dialect ("dist.place"). Where it may stand, and what it may be: both as a check, and as
/// words of the error.
struct AttachedAttribute {
  llvm::StringLiteral name;
  bool (*isOn)(mlir::Operation *op);
  llvm::StringLiteral on;
  bool (*isValue)(mlir::Attribute value);
  llvm::StringLiteral value;
};

template <typename... Ops> bool isOn(mlir::Operation *op) { return llvm::isa<Ops...>(op); }
/// Neither the module nor its graph.
bool isOnNode(mlir::Operation *op);
template <typename Attr> bool isA(mlir::Attribute value) { return llvm::isa<Attr>(value); }
bool isOneOf(mlir::Attribute value, llvm::ArrayRef<llvm::StringRef> words);
bool isAtLeast(mlir::Attribute value, int64_t least);
/// An array of strings.
bool isStrings(mlir::Attribute value);

/// For a dialect's verifyOperationAttribute: `attribute` is one of the dialect's `known` ones, and stands where it may.
/// Fails with an error at `op`.
llvm::LogicalResult verifyAttached(mlir::Operation *op, mlir::NamedAttribute attribute,
                                   llvm::ArrayRef<AttachedAttribute> known, llvm::StringRef dialect);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_ATTACHEDATTRIBUTES_H

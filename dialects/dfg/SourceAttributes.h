//===- SourceAttributes.h - What a node keeps of the format it was read from ----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A node's operation declares what has a meaning to passes. What else the graph's file
// said of it (in TensorFlow: attributes that dfg's operation does not have, types that
// do not follow from it, notes of TensorFlow's own) is kept for an export; of an OpaqueOp
// it is all there is. How it is kept is said here alone: in the node's attribute `tf`, a
// dictionary, which is not there where nothing is kept.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SOURCEATTRIBUTES_H
#define DISTC_DIALECTS_DFG_SOURCEATTRIBUTES_H

#include "mlir/IR/Operation.h"

namespace distc::dfg {

inline constexpr llvm::StringLiteral kSourceAttributes = "tf";

/// Whether an attribute of this name says nothing of what a node computes: notes of TensorFlow's own ("_output_shapes",
/// "$rest"), and names by which its sessions share resources.
bool isForExport(llvm::StringRef name);

/// All that is kept; empty where nothing is.
mlir::DictionaryAttr getSourceAttributes(mlir::Operation *op);

/// One of them; null where it is not kept, or not such an attribute.
template <typename T = mlir::Attribute> T getSourceAttribute(mlir::Operation *op, llvm::StringRef name) {
  return llvm::dyn_cast_or_null<T>(getSourceAttributes(op).get(name));
}

/// Keeps these and no others.
void setSourceAttributes(mlir::Operation *op, llvm::ArrayRef<mlir::NamedAttribute> attributes);

/// Keeps one more, or another one.
void setSourceAttribute(mlir::Operation *op, llvm::StringRef name, mlir::Attribute value);

void removeSourceAttribute(mlir::Operation *op, llvm::StringRef name);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SOURCEATTRIBUTES_H

//===- NodeNames.h - Names of nodes as unique attributes ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_NODENAMES_H
#define DISTC_DIALECTS_DFG_NODENAMES_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// The node's name as the context's one attribute of this text, so that names are compared and hashed without being
/// read; null where it has none.
inline mlir::StringAttr getNodeNameAttr(mlir::Operation *op) {
  // Nearly all: a search through a location takes memory.
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(op->getLoc()))
    return name.getName();
  auto name = op->getLoc()->findInstanceOf<mlir::NameLoc>();
  return name ? name.getName() : mlir::StringAttr();
}

/// The entries of `control`: such names.
inline llvm::ArrayRef<mlir::Attribute> getControl(mlir::Operation *op) {
  auto control = llvm::dyn_cast_or_null<mlir::ArrayAttr>(op->getDiscardableAttr(kControlAttr));
  return control ? control.getValue() : llvm::ArrayRef<mlir::Attribute>();
}

/// The name of the node that an endpoint means, itself or by a tensor of it ("train:0"); null where it is no text.
inline mlir::StringAttr getEndpointNode(mlir::Attribute endpoint) {
  auto text = llvm::dyn_cast_or_null<mlir::StringAttr>(endpoint);
  return text ? mlir::StringAttr::get(text.getContext(), text.getValue().split(':').first) : text;
}

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_NODENAMES_H

//===- SourceAttributes.cpp - What a node keeps of the format it was read from -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/SourceAttributes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace distc::dfg {

bool isForExport(llvm::StringRef name) {
  return name.starts_with("_") || name.starts_with("$") ||
         llvm::is_contained({"allowed_devices", "container", "debug_name", "shared_name"}, name);
}

DictionaryAttr getSourceAttributes(Operation *op) {
  auto kept = op->getAttrOfType<DictionaryAttr>(kSourceAttributes);
  return kept ? kept : DictionaryAttr::get(op->getContext());
}

void setSourceAttributes(Operation *op, ArrayRef<NamedAttribute> attributes) {
  if (attributes.empty())
    op->removeAttr(kSourceAttributes);
  else
    op->setAttr(kSourceAttributes, DictionaryAttr::get(op->getContext(), attributes));
}

void setSourceAttribute(Operation *op, llvm::StringRef name, Attribute value) {
  NamedAttrList attributes(getSourceAttributes(op));
  attributes.set(name, value);
  setSourceAttributes(op, attributes);
}

void removeSourceAttribute(Operation *op, llvm::StringRef name) {
  DictionaryAttr kept = getSourceAttributes(op);
  if (!kept.contains(name))
    return;
  NamedAttrList attributes(kept);
  attributes.erase(name);
  setSourceAttributes(op, attributes);
}

} // namespace distc::dfg

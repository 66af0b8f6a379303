//===- AttachedAttributes.cpp - A dialect's attributes on other operations -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/AttachedAttributes.h"
#include "dialects/dfg/Dfg.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace distc::dfg {

bool isOnNode(Operation *op) { return !llvm::isa<ModuleOp, GraphOp>(op); }

bool isOneOf(Attribute value, ArrayRef<llvm::StringRef> words) {
  auto text = llvm::dyn_cast<StringAttr>(value);
  return text && llvm::is_contained(words, text.getValue());
}

bool isAtLeast(Attribute value, int64_t least) {
  auto number = llvm::dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64) && number.getInt() >= least;
}

bool isStrings(Attribute value) {
  auto array = llvm::dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
}

LogicalResult verifyAttached(Operation *op, NamedAttribute attribute, ArrayRef<AttachedAttribute> known,
                             llvm::StringRef dialect) {
  llvm::StringRef name = attribute.getName().getValue();
  const auto *attached = llvm::find_if(known, [&](const AttachedAttribute &one) { return one.name == name; });
  if (attached == known.end())
    return op->emitOpError() << "attribute '" << name << "' is none of the dialect '" << dialect << "'";
  if (!attached->isOn(op))
    return op->emitOpError() << "attribute '" << name << "' stands on " << attached->on << " only";
  if (!attached->isValue(attribute.getValue()))
    return op->emitOpError() << "attribute '" << name << "' is not " << attached->value;
  return success();
}

} // namespace distc::dfg

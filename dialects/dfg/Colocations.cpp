//===- Colocations.cpp - What nodes ask to be placed with ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Colocations.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc::dfg {

constexpr llvm::StringLiteral kColocationAttr = "_class";
constexpr llvm::StringLiteral kColocationPrefix = "loc:@";

void mapColocations(Operation *op, ColocationMap map) {
  auto kept = op->getAttrOfType<DictionaryAttr>(kTensorFlowAttr);
  auto classes = kept ? kept.getAs<ArrayAttr>(kColocationAttr) : ArrayAttr();
  if (!classes)
    return;
  Builder builder(op->getContext());
  SmallVector<Attribute> mapped;
  auto add = [&](Attribute item) {
    if (!llvm::is_contained(mapped, item))
      mapped.push_back(item);
  };
  for (Attribute item : classes) {
    auto text = llvm::dyn_cast<StringAttr>(item);
    llvm::StringRef name = text ? text.getValue() : "";
    if (!name.consume_front(kColocationPrefix)) {
      add(item);
      continue;
    }
    for (const std::string &other : map(name))
      add(builder.getStringAttr(kColocationPrefix + other));
  }
  if (ArrayRef<Attribute>(mapped) == classes.getValue())
    return;
  NamedAttrList attributes(kept);
  if (mapped.empty())
    attributes.erase(kColocationAttr);
  else
    attributes.set(kColocationAttr, builder.getArrayAttr(mapped));
  if (attributes.empty())
    op->removeAttr(kTensorFlowAttr);
  else
    op->setAttr(kTensorFlowAttr, attributes.getDictionary(op->getContext()));
}

} // namespace distc::dfg

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
  auto classes = getSourceAttribute<ArrayAttr>(op, kColocationAttr);
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
  if (mapped.empty())
    removeSourceAttribute(op, kColocationAttr);
  else
    setSourceAttribute(op, kColocationAttr, builder.getArrayAttr(mapped));
}

} // namespace distc::dfg

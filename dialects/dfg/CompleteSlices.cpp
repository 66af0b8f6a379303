//===- CompleteSlices.cpp - Tables that a graph itself splits ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/CompleteSlices.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace distc::dfg {

llvm::SmallVector<std::pair<llvm::StringRef, SliceAttr>>
findCompleteSlices(DictionaryAttr slices, llvm::function_ref<bool(llvm::StringRef variable)> hasVariable) {
  llvm::SmallVector<std::pair<llvm::StringRef, SliceAttr>> found;
  llvm::StringMap<int64_t> missing; // elements, of each whole
  for (NamedAttribute entry : slices ? slices.getValue() : llvm::ArrayRef<NamedAttribute>()) {
    auto slice = llvm::dyn_cast<SliceAttr>(entry.getValue());
    if (!slice || !hasVariable(entry.getName()))
      continue;
    missing.try_emplace(slice.getWhole(), llvm::product_of(slice.getShape().asArrayRef())).first->second -=
        llvm::product_of(slice.getSizes().asArrayRef());
    found.emplace_back(entry.getName(), slice);
  }
  llvm::erase_if(found, [&](const auto &entry) { return missing[entry.second.getWhole()] != 0; });
  return found;
}

} // namespace distc::dfg

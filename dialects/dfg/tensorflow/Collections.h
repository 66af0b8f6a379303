//===- Collections.h - What a graph's collections name ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A graph keeps the collections of its MetaGraphDef as they were written (`collections`), for an export. Passes that
// take a variable apart, or leave one out, say here what its entries become; how they are written nobody else knows.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_COLLECTIONS_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_COLLECTIONS_H

#include "dialects/dfg/tensorflow/SavedSlices.h"
#include <optional>
#include <string>
#include <vector>

namespace distc::tf {

/// A variable's entry. Its other fields go with it.
struct CollectedVariable {
  std::string variable;     // the tensor of its handle, "w:0"
  std::string initializer;  // the node that assigns its first value
  std::string initialValue; // the tensor of that value; empty where it is not known
  std::string snapshot;     // the tensor that stands for what it holds
  bool isResource = false;  // and no reference variable
  std::optional<SavedSlice> slice;
};

/// What becomes of entries, in the collection `key`: nothing, they stay; else these in their place.
struct CollectionsEdit {
  /// Of a tensor or node by name; may be null.
  llvm::function_ref<std::optional<llvm::SmallVector<std::string>>(llvm::StringRef key, llvm::StringRef name)> name;
  /// Of a variable's entry.
  llvm::function_ref<std::optional<std::vector<CollectedVariable>>(llvm::StringRef key, const CollectedVariable &entry)>
      variable;
};

/// Nothing where the graph has no collections, or no message that can be read.
void editCollections(dfg::GraphOp graph, const CollectionsEdit &edit);

/// The nodes and tensors that collections name, in no order.
std::vector<std::string> getCollectedNames(dfg::GraphOp graph);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_COLLECTIONS_H

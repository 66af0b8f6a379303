//===- Collections.cpp - What a graph's collections name ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Collections.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/meta_graph.pb.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc::tf {

static std::optional<MetaGraphDef> readCollections(dfg::GraphOp graph) {
  dfg::RawAttr kept = graph.getCollectionsAttr();
  MetaGraphDef meta;
  if (!kept || !meta.ParseFromString(kept.getBytes().str()))
    return std::nullopt;
  return meta;
}

static CollectedVariable read(const VariableDef &entry) {
  CollectedVariable read = {entry.variable_name(), entry.initializer_name(), entry.initial_value_name(),
                            entry.snapshot_name(), entry.is_resource(),      {}};
  if (entry.has_save_slice_info_def())
    read.slice = SavedSlice::read(entry.save_slice_info_def());
  return read;
}

static std::string write(const CollectedVariable &edited, VariableDef entry) {
  entry.set_variable_name(edited.variable);
  entry.set_initializer_name(edited.initializer);
  entry.set_initial_value_name(edited.initialValue);
  entry.set_snapshot_name(edited.snapshot);
  if (edited.slice)
    edited.slice->write(*entry.mutable_save_slice_info_def());
  return entry.SerializeAsString();
}

static bool editNames(llvm::StringRef key, CollectionDef::NodeList &names, const CollectionsEdit &edit) {
  CollectionDef::NodeList all;
  bool changed = false;
  for (const std::string &name : names.value()) {
    auto others = edit.name(key, name);
    if (!others) {
      all.add_value(name);
      continue;
    }
    changed = true;
    for (std::string &other : *others)
      all.add_value(std::move(other));
  }
  names.Swap(&all);
  return changed;
}

static bool editVariables(llvm::StringRef key, CollectionDef::BytesList &entries, const CollectionsEdit &edit) {
  CollectionDef::BytesList all;
  bool changed = false;
  // Of messages of other kinds (contexts of conditions and loops) protobuf tells that they are no such ones.
  google::protobuf::LogSilencer silencer;
  for (const std::string &bytes : entries.value()) {
    // A collection may hold messages of any kind.
    VariableDef entry;
    std::optional<std::vector<CollectedVariable>> others;
    if (entry.ParseFromString(bytes))
      others = edit.variable(key, read(entry));
    if (!others) {
      all.add_value(bytes);
      continue;
    }
    changed = true;
    for (const CollectedVariable &other : *others)
      all.add_value(write(other, entry));
  }
  entries.Swap(&all);
  return changed;
}

void editCollections(dfg::GraphOp graph, const CollectionsEdit &edit) {
  std::optional<MetaGraphDef> meta = readCollections(graph);
  if (!meta)
    return;
  bool changed = false;
  for (auto &[key, collection] : *meta->mutable_collection_def())
    if (collection.has_bytes_list() && edit.variable)
      changed |= editVariables(key, *collection.mutable_bytes_list(), edit);
    else if (collection.has_node_list() && edit.name)
      changed |= editNames(key, *collection.mutable_node_list(), edit);
  if (changed)
    graph.setCollectionsAttr(
        dfg::RawAttr::get(graph.getContext(), StringAttr::get(graph.getContext(), serialize(*meta))));
}

std::vector<std::string> getCollectedNames(dfg::GraphOp graph) {
  std::vector<std::string> names;
  if (std::optional<MetaGraphDef> meta = readCollections(graph))
    for (const auto &[key, collection] : meta->collection_def())
      names.insert(names.end(), collection.node_list().value().begin(), collection.node_list().value().end());
  return names;
}

} // namespace distc::tf

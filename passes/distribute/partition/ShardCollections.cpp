//===- ShardCollections.cpp - Split variables in a graph's collections --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/ShardCollections.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/SavedSlices.h"
#include "dialects/dfg/tensorflow/meta_graph.pb.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc {
namespace {

using tf::VariableDef;

class Collections {
public:
  Collections(dfg::GraphOp graph, const Shards &shards) : shards(shards) {
    for (Operation &op : graph.getBody().front())
      if (llvm::StringRef name = dfg::getNodeName(&op); !name.empty())
        nodes.try_emplace(name, &op);
  }

  bool split(tf::MetaGraphDef &meta) {
    bool changed = false;
    for (auto &[name, collection] : *meta.mutable_collection_def())
      if (collection.has_bytes_list())
        changed |= splitEntries(*collection.mutable_bytes_list());
      else if (collection.has_node_list())
        changed |= splitNames(*collection.mutable_node_list());
    return changed;
  }

private:
  /// Tensors by name, a variable among them (feature columns note their tables so).
  bool splitNames(tf::CollectionDef::NodeList &names) {
    tf::CollectionDef::NodeList all;
    for (const std::string &tensor : names.value()) {
      auto [node, output] = llvm::StringRef(tensor).split(':');
      const ShardedVariable *variable = shards.find(node);
      if (!variable) {
        all.add_value(tensor);
        continue;
      }
      for (int64_t shard = 0; shard < variable->getCount(); ++shard)
        all.add_value(variable->getShardName(shard) + (output.empty() ? "" : ":" + output.str()));
    }
    bool changed = all.value_size() != names.value_size();
    names.Swap(&all);
    return changed;
  }

  bool splitEntries(tf::CollectionDef::BytesList &entries) {
    tf::CollectionDef::BytesList all;
    for (const std::string &bytes : entries.value()) {
      VariableDef whole;
      const ShardedVariable *variable = nullptr;
      if (whole.ParseFromString(bytes))
        variable = shards.find(llvm::StringRef(whole.variable_name()).split(':').first);
      if (!variable) {
        all.add_value(bytes);
        continue;
      }
      for (int64_t shard = 0; shard < variable->getCount(); ++shard)
        all.add_value(makeEntry(whole, *variable, shard).SerializeAsString());
    }
    bool changed = all.value_size() != entries.value_size();
    entries.Swap(&all);
    return changed;
  }

  /// The node that stands for `name` of the whole variable in the shard; null where there is none.
  Operation *findNode(llvm::StringRef name, const ShardedVariable &variable, int64_t shard) const {
    llvm::StringRef node = name.split(':').first, rest = node;
    if (rest.consume_front(variable.name) && rest.starts_with("/"))
      if (Operation *found = nodes.lookup(variable.getShardName(shard) + rest.str()))
        return found;
    return nodes.lookup(strategies::getShardName(node, shard));
  }

  /// A node that reads the variable of this name; null where there is none.
  Operation *findRead(llvm::StringRef name) const {
    Operation *handle = nodes.lookup(name);
    if (!handle)
      return nullptr;
    for (Operation *user : handle->getUsers())
      if (llvm::isa<dfg::ReadVariableOp>(user) && !dfg::getNodeName(user).empty())
        return user;
    return nullptr;
  }

  VariableDef makeEntry(const VariableDef &whole, const ShardedVariable &variable, int64_t shard) const {
    VariableDef entry = whole;
    std::string name = variable.getShardName(shard) + ":0";
    entry.set_variable_name(name);
    // A reference variable is its own value.
    Operation *snapshot = findNode(whole.snapshot_name(), variable, shard);
    if (!snapshot && whole.is_resource())
      snapshot = findRead(variable.getShardName(shard));
    entry.set_snapshot_name(snapshot ? dfg::getNodeName(snapshot).str() + ":0" : name);
    entry.clear_initial_value_name();
    if (Operation *assign = findNode(whole.initializer_name(), variable, shard)) {
      entry.set_initializer_name(dfg::getNodeName(assign).str());
      auto value = assign->getNumOperands() > 1 ? llvm::dyn_cast<OpResult>(assign->getOperand(1)) : OpResult();
      if (value && !dfg::getNodeName(value.getOwner()).empty())
        entry.set_initial_value_name(dfg::getNodeName(value.getOwner()).str() + ":" +
                                     std::to_string(value.getResultNumber()));
    }
    // What is a part of a table already is split into smaller ones.
    ArrayRef<int64_t> shape = variable.type.getShape();
    std::optional<tf::SavedSlice> own;
    if (whole.has_save_slice_info_def())
      own = tf::SavedSlice::read(whole.save_slice_info_def());
    if (!own || ArrayRef(own->sizes) != shape)
      own = {variable.name, llvm::to_vector(shape), SmallVector<int64_t>(shape.size()), llvm::to_vector(shape)};
    own->getPart(variable.getOffsets(shard), variable.getShardType(shard).getShape())
        .write(*entry.mutable_save_slice_info_def());
    return entry;
  }

  const Shards &shards;
  llvm::StringMap<Operation *> nodes;
};

} // namespace

void splitCollections(dfg::GraphOp graph, const Shards &shards) {
  dfg::RawAttr kept = graph.getCollectionsAttr();
  tf::MetaGraphDef meta;
  if (!kept || !meta.ParseFromString(kept.getBytes().str()) || !Collections(graph, shards).split(meta))
    return;
  Builder builder(graph.getContext());
  graph.setCollectionsAttr(dfg::RawAttr::get(graph.getContext(), builder.getStringAttr(tf::serialize(meta))));
}

} // namespace distc

//===- ShardCollections.cpp - Split variables in a graph's collections --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/ShardCollections.h"
#include "dialects/dfg/tensorflow/Collections.h"

using namespace mlir;

namespace distc {
namespace {

class Collections {
public:
  Collections(dfg::GraphOp graph, const Shards &shards) : shards(shards) {
    for (Operation &op : graph.getBody().front())
      if (llvm::StringRef name = dfg::getNodeName(&op); !name.empty())
        nodes.try_emplace(name, &op);
  }

  /// Tensors by name, a variable among them (feature columns note their tables so).
  std::optional<SmallVector<std::string>> splitName(llvm::StringRef tensor) const {
    auto [node, output] = tensor.split(':');
    const ShardedVariable *variable = shards.find(node);
    if (!variable)
      return std::nullopt;
    SmallVector<std::string> names;
    for (int64_t shard = 0; shard < variable->getCount(); ++shard)
      names.push_back(variable->getShardName(shard) + (output.empty() ? "" : ":" + output.str()));
    return names;
  }

  std::optional<std::vector<tf::CollectedVariable>> splitEntry(const tf::CollectedVariable &whole) const {
    const ShardedVariable *variable = shards.find(llvm::StringRef(whole.variable).split(':').first);
    if (!variable)
      return std::nullopt;
    std::vector<tf::CollectedVariable> entries;
    for (int64_t shard = 0; shard < variable->getCount(); ++shard)
      entries.push_back(makeEntry(whole, *variable, shard));
    return entries;
  }

private:
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

  tf::CollectedVariable makeEntry(const tf::CollectedVariable &whole, const ShardedVariable &variable,
                                  int64_t shard) const {
    tf::CollectedVariable entry = whole;
    entry.variable = variable.getShardName(shard) + ":0";
    // A reference variable is its own value.
    Operation *snapshot = findNode(whole.snapshot, variable, shard);
    if (!snapshot && whole.isResource)
      snapshot = findRead(variable.getShardName(shard));
    entry.snapshot = snapshot ? dfg::getNodeName(snapshot).str() + ":0" : entry.variable;
    entry.initialValue.clear();
    if (Operation *assign = findNode(whole.initializer, variable, shard)) {
      entry.initializer = dfg::getNodeName(assign).str();
      auto value = assign->getNumOperands() > 1 ? llvm::dyn_cast<OpResult>(assign->getOperand(1)) : OpResult();
      if (value && !dfg::getNodeName(value.getOwner()).empty())
        entry.initialValue = dfg::getNodeName(value.getOwner()).str() + ":" + std::to_string(value.getResultNumber());
    }
    // What is a part of a table already is split into smaller ones.
    ArrayRef<int64_t> shape = variable.type.getShape();
    if (!entry.slice || ArrayRef(entry.slice->sizes) != shape)
      entry.slice = {variable.name, llvm::to_vector(shape), SmallVector<int64_t>(shape.size()), llvm::to_vector(shape)};
    entry.slice = entry.slice->getPart(variable.getOffsets(shard), variable.getShardType(shard).getShape());
    return entry;
  }

  const Shards &shards;
  llvm::StringMap<Operation *> nodes;
};

} // namespace

void splitCollections(dfg::GraphOp graph, const Shards &shards) {
  const Collections collections(graph, shards);
  auto splitName = [&](llvm::StringRef, llvm::StringRef name) { return collections.splitName(name); };
  auto splitEntry = [&](llvm::StringRef, const tf::CollectedVariable &entry) { return collections.splitEntry(entry); };
  tf::editCollections(graph, {splitName, splitEntry});
}

} // namespace distc

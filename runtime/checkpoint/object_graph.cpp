//===- object_graph.cpp - Keys of variables in object-graph checkpoints ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/object_graph.h"
#include "checkpoint/bundle.pb.h"
#include "core/error.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace drt {
namespace {

using Graph = distc::checkpoint::TrackableObjectGraph;
using Object = Graph::TrackableObject;

const Object::SerializedTensor *valueOf(const Object &object) {
  for (const auto &tensor : object.attributes())
    if (tensor.name() == "VARIABLE_VALUE")
      return &tensor;
  return nullptr;
}

// What both graphs have under the same names, from the objects that were saved.
std::map<std::string, std::string> match(const Graph &own, const Graph &stored) {
  std::map<std::string, std::string> keys;
  std::set<std::pair<int32_t, int32_t>> seen;
  std::vector<std::pair<int32_t, int32_t>> pending = {{0, 0}};
  while (!pending.empty()) {
    const auto pair = pending.back();
    pending.pop_back();
    if (pair.first < 0 || pair.first >= own.nodes_size() || pair.second < 0 || pair.second >= stored.nodes_size() ||
        !seen.insert(pair).second)
      continue;
    const Object &object = own.nodes(pair.first), &other = stored.nodes(pair.second);
    if (const auto *value = valueOf(object), *found = valueOf(other); value && found)
      keys.emplace(value->checkpoint_key(), found->checkpoint_key());
    for (const auto &child : object.children())
      for (const auto &twin : other.children())
        if (child.local_name() == twin.local_name())
          pending.emplace_back(child.node_id(), twin.node_id());
  }
  return keys;
}

} // namespace

std::string keepSaved(std::string_view objects, const std::set<std::string> &saved) {
  Graph graph;
  if (!graph.ParseFromArray(objects.data(), int(objects.size())))
    return std::string(objects);
  for (Object &object : *graph.mutable_nodes()) {
    auto &tensors = *object.mutable_attributes();
    const auto isSaved = [&](const Object::SerializedTensor &tensor) {
      return saved.count(tensor.checkpoint_key()) != 0;
    };
    const auto kept = std::stable_partition(tensors.begin(), tensors.end(), isSaved);
    tensors.erase(kept, tensors.end());
  }
  return graph.SerializeAsString();
}

ObjectKeys::ObjectKeys(const CheckpointReader &reader, std::string_view objects) : reader_(reader) {
  Graph stored, own;
  const bool hasOwn = own.ParseFromArray(objects.data(), int(objects.size()));
  for (const Object &object : own.nodes())
    if (const auto *value = valueOf(object))
      ownKeys_.insert(value->checkpoint_key());
  if (!reader.find(kObjectGraphKey))
    return;
  if (!stored.ParseFromString(reader.readString(kObjectGraphKey)))
    throw Error("checkpoint " + reader.prefix() + " is damaged: its graph of objects cannot be read");
  for (const Object &object : stored.nodes())
    if (const auto *value = valueOf(object))
      byName_.emplace(value->full_name(), value->checkpoint_key());
  if (hasOwn)
    byOwnKey_ = match(own, stored);
}

std::map<std::string, std::string> ObjectKeys::common() const {
  std::map<std::string, std::string> keys;
  for (const std::string &key : ownKeys_) {
    const auto it = byOwnKey_.find(key);
    const std::string &stored = it == byOwnKey_.end() ? key : it->second;
    if (reader_.find(stored))
      keys.emplace(key, stored);
  }
  return keys;
}

std::string ObjectKeys::find(const std::string &name, const std::string &key) const {
  if (const auto it = byOwnKey_.find(key); it != byOwnKey_.end())
    return it->second;
  for (const std::string &candidate : {key, name})
    if (reader_.find(candidate))
      return candidate;
  const auto [first, last] = byName_.equal_range(name);
  if (first == last)
    return key;
  if (std::next(first) != last)
    throw Error("checkpoint " + reader_.prefix() + " has several variables that are called '" + name + "', '" +
                first->second + "' and '" + std::next(first)->second +
                "'; save the objects under the names that they have in the SavedModel");
  return first->second;
}

} // namespace drt

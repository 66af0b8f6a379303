//===- object_graph.h - Keys of variables in object-graph checkpoints -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_OBJECT_GRAPH_H
#define DRT_CHECKPOINT_OBJECT_GRAPH_H

#include "checkpoint/checkpoint.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace drt {

/// Under which a checkpoint of objects has their graph.
inline constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// `objects`, a graph of objects, without the tensors whose keys are not `saved`: what a checkpoint's graph names,
/// readers look for. A SavedModel's objects have variables that a training step does not.
std::string keepSaved(std::string_view objects, const std::set<std::string> &saved);

/// Finds variables in a checkpoint that objects may have been saved to.
class ObjectKeys {
public:
  /// `objects`: the graph of the program's own objects, serialized; empty where it has none.
  ObjectKeys(const CheckpointReader &reader, std::string_view objects);

  /// The key of the variable `name`, which the program's own checkpoints have under `key`: what was saved may be
  /// another object than the program's, with the same ones below it. It is, first to last: the key of the object that
  /// is found from the one that was saved by the same names; `key`; `name`; that of the only variable called `name`.
  /// Where the checkpoint has none of them it is `key`. Throws drt::Error where several variables are called `name` and
  /// nothing else tells them apart.
  std::string find(const std::string &name, const std::string &key) const;

  /// Variables of the program's objects that the checkpoint has as well, by their keys in the program's checkpoints,
  /// with those in this one.
  std::map<std::string, std::string> common() const;

private:
  const CheckpointReader &reader_;
  std::map<std::string, std::string> byOwnKey_; // the program's keys, and the checkpoint's
  std::set<std::string> ownKeys_;
  std::multimap<std::string, std::string> byName_;
};

} // namespace drt

#endif // DRT_CHECKPOINT_OBJECT_GRAPH_H

//===- checkpoint_keys.h - Where checkpoints have the variables -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A variable is in a checkpoint under its name, unless its program says otherwise:
// - TensorFlow 2 saves the values of objects: a variable's key is a path to it from
//   the object that is saved ("model/_layers/1/_kernel/.ATTRIBUTES/VARIABLE_VALUE"),
//   and the checkpoint has the graph of all objects beside them. The program of a
//   SavedModel knows both.
// - A graph may make a table of several variables ("table/part_0", by a partitioner):
//   they are slices of one tensor, "table".
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DRT_CHECKPOINT_KEYS_H
#define DRT_DRT_CHECKPOINT_KEYS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drt_checkpoint_key {
  const char *variable; // drt_variable.name
  const char *key;
  // Of a slice of what has the key: rank extents each; both null where the key has the variable itself.
  int32_t rank;
  const int64_t *full_shape;
  const int64_t *slice_begin;
} drt_checkpoint_key;

typedef struct drt_checkpoint_keys {
  int32_t num_keys;
  const drt_checkpoint_key *keys; // in the order of variables' names
  int64_t graph_bytes;            // 0 for a program whose checkpoints have no objects
  const char *graph;              // a TrackableObjectGraph, serialized
} drt_checkpoint_keys;

// Defined by the generated object where a variable's key is not its name: elsewhere its address is null.
extern const drt_checkpoint_keys drt_the_checkpoint_keys __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif // DRT_DRT_CHECKPOINT_KEYS_H

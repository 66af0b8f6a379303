//===- objects.h - Where object-graph checkpoints have the variables ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// TensorFlow 2 saves the values of objects: a variable's key is a path to it from
// the object that is saved ("model/_layers/1/_kernel/.ATTRIBUTES/VARIABLE_VALUE"),
// and the checkpoint has the graph of all objects beside them. The program of a
// SavedModel knows both.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DRT_OBJECTS_H
#define DRT_DRT_OBJECTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drt_checkpoint_key {
  const char *variable; // drt_variable.name
  const char *key;
} drt_checkpoint_key;

typedef struct drt_objects {
  int32_t num_keys;
  const drt_checkpoint_key *keys; // in the order of variables' names
  int64_t graph_bytes;
  const char *graph; // a TrackableObjectGraph, serialized
} drt_objects;

// Defined by the generated object of a SavedModel alone: elsewhere its address is null.
extern const drt_objects drt_the_objects __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif // DRT_DRT_OBJECTS_H

//===- SavedFunctions.h - Training steps that are functions ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What TensorFlow 2 writes has no collections: a SavedModel has signatures, nodes that call a function, and objects
// that own the variables; the graph of a concrete function has results and captured variables.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_SAVEDFUNCTIONS_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_SAVEDFUNCTIONS_H

#include "dialects/dfg/tensorflow/ImportBlock.h"

namespace distc::tf {

/// What a graph trains by: several of each are candidates.
struct FunctionEndpoints {
  llvm::SmallVector<std::string> trainOps, losses;
};

/// Of the signatures of a SavedModel those that update variables: the node that calls each, and its outputs that may be
/// a loss; "loss" alone where an output is called so. Where there is no signature and variables are captured: results
/// of the concrete function, which are Identities without users.
FunctionEndpoints findFunctionEndpoints(const MetaGraphDef &meta);

/// Where the variables of a SavedModel are in object-graph checkpoints.
struct SavedVariables {
  /// By the node of the variable's handle.
  llvm::StringMap<std::string> keys;
  llvm::StringSet<> trainable;
  /// The TrackableObjectGraph that a checkpoint of these variables has, serialized; empty where the file is no
  /// SavedModel of TensorFlow 2.
  std::string objects;
};
SavedVariables findSavedVariables(const MetaGraphDef &meta);

/// The type of the variable that `node`, a placeholder of a resource, stands for, by the nodes that use it, in
/// functions of the graph's library too; null where `node` is no such, or no user says it. Without a shape in the graph
/// it is unranked.
mlir::Type getCapturedType(const NodeDef &node, const NodeList &nodes, const FunctionDefLibrary &library,
                           mlir::MLIRContext *context);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_SAVEDFUNCTIONS_H

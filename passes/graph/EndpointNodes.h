//===- EndpointNodes.h - What the endpoints of a graph need --------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_ENDPOINTNODES_H
#define DISTC_PASSES_GRAPH_ENDPOINTNODES_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// The nodes of a graph by name. Whatever fails has emitted an error that names the node and what could be meant.
class EndpointNodes {
public:
  explicit EndpointNodes(dfg::GraphOp graph);

  /// Null where there is none; `kind` is "operation" or "tensor", for the error.
  mlir::Operation *findNode(llvm::StringRef name, llvm::StringRef kind);
  /// The value of `NODE:OUTPUT` (`NODE` is its output 0); null where there is none, or where it is a variable's handle.
  mlir::Value findTensor(llvm::StringRef tensor);
  /// Of the graph's endpoints those that are there; that one is not, dfg-check-endpoints says.
  /// `initializes`: the init op as well.
  llvm::SmallVector<mlir::Operation *> findEndpoints(bool initializes = true);
  /// Everything that `roots` need, through data and control edges. Nodes without effects do not wait for `passedOver`,
  /// for what they compute does not depend on it; but where a node with effects waits for them, they do.
  llvm::FailureOr<llvm::DenseSet<mlir::Operation *>> collect(llvm::ArrayRef<mlir::Operation *> roots,
                                                             const llvm::DenseSet<mlir::Operation *> &passedOver = {});
  /// Notes those of `needed` that have no semantics; `endpoint` is what needs them.
  void noteMissingCode(const llvm::DenseSet<mlir::Operation *> &needed, llvm::StringRef endpoint);
  /// Fails where any was noted, with one report of all: operations, their nodes, and which endpoints need them.
  llvm::LogicalResult reportMissingCode();

private:
  dfg::GraphOp graph;
  llvm::StringMap<mlir::Operation *> nodes;

  /// An operation that has no semantics, where it must run.
  struct MissingCode {
    llvm::SetVector<mlir::Operation *> nodes;
    llvm::SetVector<llvm::StringRef> endpoints;
  };
  llvm::MapVector<llvm::StringRef, MissingCode> missing; // by operation, the first node first
};

} // namespace distc

#endif // DISTC_PASSES_GRAPH_ENDPOINTNODES_H

//===- Roles.h - What the tasks of a plan run ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SERVERS_ROLES_H
#define DISTC_PASSES_DISTRIBUTE_SERVERS_ROLES_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/NumberedNodes.h"

namespace distc {

/// The chief is worker 0: it computes as the others, and what one task alone does for all.
enum class Role { Chief, Worker };

/// The place of a node that one task alone runs; null: every worker runs it.
dist::PlaceAttr getPlace(mlir::Operation *op);
bool isServer(dist::PlaceAttr place);
/// What the pull that stands in for a read is called: as the read; one that a reference makes by itself has no name.
mlir::Location getPullLocation(dfg::ReadVariableOp read);

/// The nodes that `role` runs, without what depends on others' and what only fed them. With `sessions` servers run
/// nothing by themselves: the chief's session runs their nodes, and each worker's those that wait for no other worker.
/// Fails with a diagnostic where an endpoint (loss, fetches) goes.
llvm::FailureOr<llvm::BitVector> findRoleNodes(dfg::GraphOp graph, const NumberedNodes &nodes, Role role,
                                               bool sessions);

/// Takes out of `graph` what `role` does not run.
llvm::LogicalResult pruneForRole(dfg::GraphOp graph, Role role, bool sessions);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SERVERS_ROLES_H

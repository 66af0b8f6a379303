//===- Dist.h - The dialect of distribution plans -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DIST_DIST_H
#define DISTC_DIALECTS_DIST_DIST_H

#include "dialects/dfg/Dfg.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace distc::dist {

// Facts that passes ask for, declared in ODS (DistOps.td): traits of operations ...
/// ... in which every replica takes part, in the order of buckets.
template <typename Op> class Collective : public mlir::OpTrait::TraitBase<Op, Collective> {};
/// ... that give a replica what other replicas' examples have a part in, or take its own part of such a value.
template <typename Op> class Couples : public mlir::OpTrait::TraitBase<Op, Couples> {};
/// ... that give every replica the same, of values that each has of its own.
template <typename Op> class GivesAll : public mlir::OpTrait::TraitBase<Op, GivesAll> {};
/// ... that give each replica something of its own, whatever they are given.
template <typename Op> class GivesShare : public mlir::OpTrait::TraitBase<Op, GivesShare> {};
/// ... that are one side of what replicas and servers give each other.
template <typename Op> class OfServers : public mlir::OpTrait::TraitBase<Op, OfServers> {};

} // namespace distc::dist

#include "dialects/dist/DistDialect.h.inc"
#include "dialects/dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace distc::dist {

/// On the module: what the strategy says of all variables together, a #dist.strategy.
inline constexpr llvm::StringLiteral kStrategyAttr = "dist.strategy";
/// On a variable: what it says of it, a #dist.sync; and of the shards that it is to be split into, a #dist.parts.
inline constexpr llvm::StringLiteral kSyncAttr = "dist.sync", kPartsAttr = "dist.parts";
/// On the module where replicas use values of their own share in place of the whole batch's, which the strategy asks
/// for: "replica".
inline constexpr llvm::StringLiteral kCouplingAttr = "dist.coupling";
/// On a graph: of each fetched tensor what it gives over all replicas: "concat:AXIS", "sum", "mean", "batch" or
/// "first".
inline constexpr llvm::StringLiteral kJoinsAttr = "dist.joins";
/// On a variable that a server holds, and on a node that one task alone runs: #dist.place.
inline constexpr llvm::StringLiteral kPlaceAttr = "dist.place";
/// On a graph that is one role's program: "chief", "worker" or "server" (with kPlaceAttr).
inline constexpr llvm::StringLiteral kRoleAttr = "dist.role";
/// On a variable that is a part of one: #dist.slice.
inline constexpr llvm::StringLiteral kSliceAttr = "dist.slice";
/// On a slot whose replicas hold a share each: how many shares there are.
inline constexpr llvm::StringLiteral kSharesAttr = "dist.shares";
/// On a placeholder: kSharded or kWhole.
inline constexpr llvm::StringLiteral kFeedAttr = "dist.feed";
inline constexpr llvm::StringLiteral kSharded = "sharded";
inline constexpr llvm::StringLiteral kWhole = "whole";
/// On a stateful random node whose numbers differ between replicas: "replica".
inline constexpr llvm::StringLiteral kSeedAttr = "dist.seed";
/// On a node of the unrolled form: the replica that it belongs to, until dist-rename-scopes.
inline constexpr llvm::StringLiteral kReplicaAttr = "dist.replica";
/// On an update of a step whose gradients are accumulated: it happens at each batch.
inline constexpr llvm::StringLiteral kEachBatchAttr = "dist.each_batch";
/// Name of the module's topology.
inline constexpr llvm::StringLiteral kCluster = "cluster";

/// The module's topology; without one it fails with a diagnostic that says which pass makes it.
llvm::FailureOr<TopologyOp> getTopology(mlir::ModuleOp module);
/// Whether every replica takes part in `op`, in the order of buckets.
bool isCollective(mlir::Operation *op);
/// Over how many replicas the module runs; 1 where it has no topology.
int64_t getReplicas(mlir::ModuleOp module);

} // namespace distc::dist

#endif // DISTC_DIALECTS_DIST_DIST_H

//===- PlanOrder.h - Which accesses of a plan other replicas can meet -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The replicas of a task run one entry each, operation by operation, and are not
// in step. What one did at an operation is done when another is at a later one only
// where they met between: at a barrier, or because the later one waited for a bucket
// that the first had started behind the earlier operation.
//
//   replica 0:  A ... start ............
//   replica 1:        start ... wait ... B      A is done when B begins
//
// So one number is enough: the position of the last operation that all replicas are
// known to be past (or at). Two accesses race where they touch the same memory, one
// writes, their extents are not cut alike, and the earlier one lies behind it.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_PLANORDER_H
#define DISTC_PASSES_LOWER_PLAN_PLANORDER_H

#include "dialects/drt/Drt.h"

namespace distc {

/// Two accesses that nothing orders.
struct Race {
  mlir::Operation *earlier; // may be the later one itself
  drt::Access before, now;
};

/// Follows an entry's operations in their order, in time linear in them.
class PlanOrder {
public:
  explicit PlanOrder(drt::EntryOp entry);

  /// Whether some task has several replicas, which are threads that share its variables. Without, nothing races.
  bool replicasShareMemory() const { return shared; }

  /// An access of another replica, at an earlier operation or at this one, that may happen while `op` is under way. A
  /// meeting before `op` orders it, but where `earlier` is `op`.
  std::optional<Race> findRace(drt::AccessInterface op) const;

  /// `op` is the next operation of the entry.
  void advance(mlir::Operation *op);

  /// Of an entry's operations, counted from 1: when `op`, the next one, accesses memory, every replica is past those
  /// before that number.
  unsigned getMetBefore(mlir::Operation *op) const;

  /// The variable that an access touches and that the task's replicas share; null where it touches none.
  mlir::FlatSymbolRefAttr getSharedVariable(const drt::Access &access) const;

private:
  struct Record {
    unsigned position;
    mlir::Operation *op;
    drt::Access access;
  };
  using Records = llvm::SmallVector<Record, 2>;

  const Records *getRecords(const drt::Access &access) const;
  Records *getOrCreateRecords(const drt::Access &access);

  bool shared = true;
  llvm::DenseSet<mlir::Attribute> heldInShares; // variables of which every replica has its own part
  unsigned next = 1;                            // position of the next operation
  unsigned met = 0;                             // all replicas are past what lies before this position
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseMap<int32_t, unsigned> starts; // of buckets
  // The last access of each kind.
  llvm::DenseMap<mlir::Attribute, Records> variables;
  llvm::DenseMap<int32_t, Records> buckets;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_PLANORDER_H

//===- PlanBuilder.h - One entry as a plan: order, synchronization, updates -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Lowers the nodes of an entry in their order. A tensor of the plan is a value: what
// it was where it was made, also that of a variable that is updated later, or of a
// gradient that is reduced in place. Which of them must be copied, and where the
// replicas must meet, is found when the plan is done (drt-insert-copies,
// drt-insert-barriers). What is decided here is when things happen:
//   - updates wait until the entry's end, or until a node reads a variable that
//     an earlier node updates;
//   - a bucket is started when its gradients are there and nothing that follows
//     reads the variables which it updates: so the wait for it is all that the
//     replicas must do to meet before their updates.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_PLANBUILDER_H
#define DISTC_PASSES_LOWER_PLAN_PLANBUILDER_H

#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/SymbolNames.h"
#include "passes/lower/entries/EntryLowering.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace distc::lower {

class PlanBuilder : public EntryLowering {
public:
  PlanBuilder(mlir::ModuleOp module, dfg::FuncOp entry, const LoweringTable &table);

  /// Builds the plan's function beside the entry. Fails with a diagnostic at the node.
  llvm::LogicalResult build();

  Value get(Value graphValue) override;

private:
  struct Bucket {
    mlir::Operation *op = nullptr; // dist.all_reduce, dist.reduce_scatter
    int32_t number = -1;           // in the order in which buckets start; -1: not started
    bool waited = false;
    llvm::SmallVector<Value> results; // of drt.all_reduce_result, where it was needed
  };

  /// Of the variable that a handle, or a share of it, is of.
  static llvm::StringRef variableName(Value handle);

  void analyze();
  llvm::LogicalResult lowerNode(mlir::Operation *node);
  /// Some values for the results of a node that has no code; false where there are none of such types.
  bool standIn(mlir::Operation *node);
  void lowerPlaceholder(dfg::PlaceholderOp node);
  /// A node that gives the value of the variable of `handle`.
  void lowerRead(mlir::Operation *node, Value handle);
  void startReadyBuckets(unsigned position);
  void start(Bucket &bucket);
  /// Starts it where nothing has: a node needs a result while something behind it reads the variables.
  void waitFor(Bucket &bucket);
  llvm::ArrayRef<Value> resultsOf(Bucket &bucket);

  /// Emits the updates that wait.
  llvm::LogicalResult flushUpdates();
  /// The value that an emitted update gives, if something uses it: its variable's, as it is now.
  void setUpdated(dfg::UpdateInterface update);
  /// Joins the replicas' rows of a sparse gradient, right here.
  llvm::LogicalResult gatherSlices(dist::AllGatherSlicesOp node);
  /// A replica's rows of a mean over so many gradients.
  mlir::Value scaleRows(mlir::Location loc, mlir::Value rows, int64_t divisor);
  /// Starts to join the replicas' rows; waits for them.
  llvm::LogicalResult gatherRows(dist::AllGatherOp node);
  mlir::Value receiveRows(dist::AllGatherOp node);
  llvm::LogicalResult pullRows(dist::PullRowsOp node);
  /// The node's indices, checked, in a type of which the runtime knows rows.
  llvm::FailureOr<mlir::Value> getRowNumbers(dist::PullRowsOp node);
  /// Indices and values of an update of rows, a value for each index.
  llvm::FailureOr<std::pair<Value, Value>> getSlices(dfg::UpdateInterface node);
  llvm::LogicalResult emitUpdate(dfg::UpdateInterface node);
  /// Whether there is no element that the update could write: of the variable, or that its indices name.
  bool updatesNothing(dfg::UpdateInterface node);
  /// How an update of shares sees what it works on: the share's type, and the elements of the whole; a null type where
  /// it is none.
  std::pair<mlir::RankedTensorType, int64_t> getShare(Value handle);
  llvm::LogicalResult checkShares(mlir::Operation *node);
  void lowerAccumulate(mlir::Operation *node);
  void startGathers();
  /// On devices: elements that gradients, or the variables of handles, have room for, where replicas share them.
  mlir::DenseI64ArrayAttr getRoom(llvm::ArrayRef<mlir::Value> values);
  /// What the entry takes from servers, or gives to them (drt.pull, drt.take; drt.push, drt.take_token): all of it at
  /// once, at its beginning or its end.
  llvm::LogicalResult beginServed();
  llvm::LogicalResult pullServed();
  /// Nodes that the rows which the entry pulls are chosen by: they are computed first.
  llvm::LogicalResult lowerChoices(llvm::ArrayRef<dist::PullRowsOp> pulls);
  llvm::LogicalResult endServed();
  /// Before a variable that others have updated shares of is read.
  void waitForGather(llvm::StringRef variable, mlir::Location loc);
  void emitFetches(dfg::ReturnOp ret);

  /// The bucket and the member that a graph value is, looking through nodes that hand it on.
  std::pair<Bucket *, unsigned> findMember(Value graphValue);

  drt::VariableOp variable(llvm::StringRef name) const { return variables.lookup(name); }

  mlir::ModuleOp module;
  dfg::FuncOp entry;
  llvm::StringMap<drt::VariableOp> variables;
  SymbolNames symbolNames{module};
  unsigned kernels = 0, loops = 0;

  llvm::DenseSet<mlir::Operation *> lowered; // before their turn
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  /// For each variable, the position of the last node that reads its memory.
  llvm::StringMap<unsigned> lastReader;
  llvm::StringSet<> updated;
  llvm::MapVector<mlir::Operation *, Bucket> buckets;
  /// The buckets in the order in which they may start, from which position on each; how many of them were looked at.
  llvm::SmallVector<std::pair<unsigned, mlir::Operation *>> startPositions;
  size_t passedStarts = 0;
  int32_t startedBuckets = 0;

  llvm::SmallVector<dfg::UpdateInterface> waiting;
  llvm::StringSet<> waitingVariables; // that updates or gathers wait for
  /// dist.all_gather_variables that wait for the updates before them, and the bucket of each variable that is on its
  /// way.
  llvm::SmallVector<mlir::Operation *> waitingGathers;
  llvm::StringMap<int32_t> gathers;
  /// Rows on their way, and their bucket.
  llvm::MapVector<dist::AllGatherOp, int32_t> gatheredRows;
  int32_t accumulators = 0;
  bool missing = false; // a value that a node needed; the diagnostic is out
};

} // namespace distc::lower

#endif // DISTC_PASSES_LOWER_PLAN_PLANBUILDER_H

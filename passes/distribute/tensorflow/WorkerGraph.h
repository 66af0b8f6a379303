//===- WorkerGraph.h - One worker's graph on its way to TensorFlow -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_TENSORFLOW_WORKERGRAPH_H
#define DISTC_PASSES_DISTRIBUTE_TENSORFLOW_WORKERGRAPH_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/exchange/Exchange.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace distc {

/// What the parts of `dist-legalize-for-tensorflow` share. The graph is in the unrolled form where the task has several
/// replicas; members of collectives are tasks.
struct WorkerGraph final : Exchange {
  WorkerGraph(dfg::GraphOp graph, dist::TopologyOp topology, dist::TaskAttr task,
              mlir::ArrayRef<dist::TaskAttr> workers);

  dfg::GraphOp graph;
  mlir::Block &block;
  /// The task that runs this graph, and all that run replicas.
  dist::TaskAttr task;
  llvm::SmallVector<dist::TaskAttr> workers;
  /// Of this task.
  int64_t taskReplicas;

  bool isChief() const { return task.getIndex() == 0; }
  /// "/job:worker/task:1".
  static std::string getDevice(llvm::StringRef job, int64_t index);
  /// A replica's part of a name's scope: 1 of "replica_1/dropout".
  static int64_t getLocalReplica(llvm::StringRef name);
  std::string getDevice() const { return getDevice(task.getJob(), task.getIndex()); }

  /// Where the variable is held, null where every worker has it.
  dist::PlaceAttr getPlace(llvm::StringRef variable) const { return places.lookup(variable); }
  bool hasPlaces() const { return !places.empty(); }
  bool hasTask(dist::PlaceAttr place) const { return tasks.contains({place.getJob(), place.getIndex()}); }
  /// `op` runs on the task of `place`.
  void place(mlir::Operation *op, dist::PlaceAttr place);

  /// A variable that this pass adds, of which every worker has its own: its handle; nothing initializes it.
  mlir::Value addHandle(llvm::StringRef name, mlir::TensorType type);
  /// The same, initialized by `value`. `growing`: its first size changes.
  mlir::Value addVariable(llvm::StringRef name, mlir::DenseElementsAttr value, bool growing = false);
  mlir::Value read(llvm::StringRef name, mlir::Value handle);
  mlir::Operation *assign(llvm::StringRef name, mlir::Value handle, mlir::Value value);

  /// A collective of all tasks, after the one before it: "Reduce" (with "Add") or "Gather".
  bool hasCollectives() const { return lastCollective; }
  mlir::Value collective(llvm::StringRef kind, mlir::Value value, dist::Spec spec) override;
  bool hasPeers() const override { return workers.size() > 1; }

  mlir::Value addState(llvm::StringRef name, mlir::DenseElementsAttr initial) override {
    return addVariable(name, initial);
  }
  mlir::Value readState(llvm::StringRef name, mlir::Value handle) override { return read(name, handle); }
  void keepState(llvm::StringRef name, mlir::Value handle, mlir::Value value) override {
    stepNodes.push_back(assign(name, handle, value));
  }

  /// What the init op waits for besides, what the train op does.
  llvm::SmallVector<mlir::Operation *> initNodes, stepNodes;
  llvm::StringMap<dist::PlaceAttr> places;
  /// Has a device that is final.
  llvm::DenseSet<mlir::Operation *> placed;

  /// Puts `node` where `op` was: with its name, what it waits for and its uses.
  void replaceNode(mlir::Operation *op, mlir::Operation *node);

  /// Nodes that stand for an operation of `dist` in control edges, by its name.
  llvm::StringMap<llvm::SmallVector<mlir::Operation *, 2>> aliases;
  /// Nodes that no group of this worker's waits for.
  llvm::StringSet<> excluded;
  llvm::StringMap<mlir::Type> variableTypes;
  llvm::StringSet<> references;

  /// The local replicas' shares of a variable, each with the update of it.
  llvm::StringMap<llvm::SmallVector<std::pair<mlir::Value, mlir::Operation *>>> shares;

  /// Several batches in a row: whether the batch is the last of them, and a node that is dead at others.
  struct Batches {
    mlir::Value isLast;
    mlir::Operation *guard = nullptr;
  };
  /// By their number.
  std::map<int64_t, Batches> batches;
  /// Nodes by which a value goes on at the last batch alone: at others what it is needed for is dead.
  llvm::DenseSet<mlir::Operation *> gates;
  /// The next collective itself waits for a node that runs at each batch.
  void meetDeadCollectives() { lastCollectiveIsOfLastBatch = false; }
  /// A node that runs at each batch, once what it waits for has run or is dead.
  mlir::Operation *meetAtEachBatch();

  /// A worker's copy of a variable that a server holds.
  struct Proxy {
    /// The server's variable, and the copy once there is one.
    mlir::Value handle, copy;
    dist::PlaceAttr place;
    std::string scope;
    /// What of this graph reads the copy, and updates and initializes the server's.
    llvm::SmallVector<mlir::Operation *> reads, updates, initializers;
  };
  llvm::MapVector<llvm::StringRef, Proxy> proxies;

  /// What this worker's graph has of parameter servers.
  struct {
    /// Accumulators and queues by their shared names.
    llvm::StringMap<mlir::Value> accumulators;
    /// What the chief is given without an accumulator.
    llvm::StringMap<llvm::SmallVector<mlir::Value>> sent;
    /// Accumulators whose gradients are aggregated by a rule.
    llvm::StringSet<> aggregated;
    llvm::SmallVector<mlir::Operation *> takes;
    /// The chief's updates, in a step, of variables that one task holds, but for the train op itself.
    llvm::SmallVector<mlir::Operation *> updates;
    /// Takes of gradients that follow from updates of the same step, by name, and of `takes` what became of them; the
    /// updates that lead to them.
    llvm::StringSet<> lateTakes;
    llvm::DenseSet<mlir::Operation *> late;
    llvm::DenseSet<mlir::Operation *> earlyUpdates;
    /// Nodes, by name, of this worker that have read what no gradient that it pushes follows from, those among them
    /// that are dead where a branch of version 1 is not taken, and whether there are any, in any worker.
    llvm::SmallVector<std::string> reads, readsThatMayBeDead;
    bool waitsForReads = false;
    /// An update is not of one gradient of each replica: the chief may take gradients after another's last step.
    bool isLoose = false;
    /// The number of the step that the worker is at.
    mlir::Value step;
    /// What ends a step where workers wait for tokens.
    mlir::Operation *end = nullptr;
    /// Where an update takes several batches: a node that is dead at others than the last.
    mlir::Operation *guard = nullptr;
  } servers;

private:
  /// Of what all workers' rows are, behind each other.
  mlir::Type getGathered(mlir::Type type) const;
  /// Without an `instance` the one of this number.
  mlir::Value issueCollective(llvm::StringRef kind, mlir::Value value, dist::Spec spec, int32_t groupKey,
                              mlir::Value instance);

  /// Whether what `value` is made of, or waits for, runs at the last of several batches alone.
  bool isOfLastBatch(mlir::Value value) const;

  llvm::DenseSet<std::pair<llvm::StringRef, int64_t>> tasks;
  mlir::Operation *lastCollective = nullptr;
  bool lastCollectiveIsOfLastBatch = false;
  int32_t collectives = 0;
};

/// Placeholders are fed once and split; the loss and what else is named from outside has its name again.
llvm::LogicalResult joinReplicas(WorkerGraph &worker);
/// dist.all_reduce, dist.all_gather_slices.
llvm::LogicalResult legalizeReduction(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeGather(WorkerGraph &worker, const Issue &issue);
/// dist.all_gather, dist.take_rows; dist.whole_size and dist.rescale.
llvm::LogicalResult legalizeGatherRows(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeTakeRows(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeWholeSize(WorkerGraph &worker, const Issue &issue);
/// The sums or means over all replicas of what local replicas reduce alike.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> reduceBucket(WorkerGraph &worker, const Issue &issue,
                                                             dist::Reduction reduction, dist::Spec spec,
                                                             dist::CompressionAttr compression);
/// dist.reduce_scatter, dist.take_share, dist.share_handle, dist.all_gather_variables; slots that are shares.
llvm::LogicalResult legalizeReduceScatter(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeTakeShare(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeShareHandle(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeGatherVariables(WorkerGraph &worker, const Issue &issue);
void legalizeSlots(WorkerGraph &worker);
llvm::LogicalResult legalizeAccumulate(WorkerGraph &worker, const Issue &issue);
/// Counts batches, each worker its own, all of which run the same ones.
const WorkerGraph::Batches &countBatches(WorkerGraph &worker, int64_t number);
/// dist.push, dist.take, dist.tokens, dist.pull, dist.pull_rows.
llvm::LogicalResult legalizePush(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeTake(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizeTokens(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizePull(WorkerGraph &worker, const Issue &issue);
llvm::LogicalResult legalizePullRows(WorkerGraph &worker, const Issue &issue);
/// Which pulls read a copy of the worker's, while the graph is as it was; and what makes copies what servers hold.
void findProxies(WorkerGraph &worker);
void finishProxies(WorkerGraph &worker);
/// What the chief's updates must wait for, while the graph is that of all workers.
llvm::LogicalResult findReads(WorkerGraph &worker);
/// Takes out of other workers' graphs what the chief does for all, and finds the chief's updates.
void pruneChiefsWork(WorkerGraph &worker);
/// The chief updates what servers hold when it has all gradients: until then workers may read.
void orderUpdates(WorkerGraph &worker);
/// dist.own_rows: each replica's rows by themselves.
llvm::LogicalResult legalizeOwnRows(WorkerGraph &worker, const Issue &issue);
/// The device of every node, and no colocation that contradicts it.
void placeNodes(WorkerGraph &worker);
/// Replicas draw what belongs to their examples, of the same numbers for the whole batch; anything else all workers
/// draw alike.
llvm::LogicalResult drawAlike(WorkerGraph &worker);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_TENSORFLOW_WORKERGRAPH_H

//===- OrderReads.cpp - Workers read before the chief updates ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What servers hold has the values of a step until every worker has read them. The
// chief updates when it has all gradients, so a read is waited for where a gradient
// that its worker pushes follows from it. Nothing waits for other reads: those of a
// graph whose gradients are the same in all replicas, so that nobody pushes them, or
// of a loss that no gradient needs. For them each worker puts an element into a queue
// when it has read, and the chief takes an element a worker before it updates.
//
// Conditions and loops that are exported as they are take handles and read by
// themselves: of functions the node that runs them has read when it is done; of
// version 1 a loop's Exits, and what is behind a Switch, which may be dead.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeEdges.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {
namespace {

/// The graph's edges by data, by control, and from what is pushed to what is taken.
class Edges {
public:
  explicit Edges(Block &block) : nodes(block) {
    for (auto push : block.getOps<dist::PushOp>())
      pushes[push.getAccumulator()].push_back(push);
    for (Operation &op : block)
      for (Operation *before : getBefore(&op))
        after[before].push_back(&op);
  }

  Operation *find(llvm::StringRef tensor) const { return nodes.find(tensor.split(':').first); }

  SmallVector<Operation *> getBefore(Operation *op) const {
    SmallVector<Operation *> before = nodes.getBefore(op);
    if (auto take = llvm::dyn_cast<dist::TakeOp>(op))
      llvm::append_range(before, pushes.lookup(take.getAccumulator()));
    return before;
  }

  using Set = llvm::DenseSet<Operation *>;
  /// With the roots themselves.
  Set collectBefore(ArrayRef<Operation *> roots) const {
    return collect(roots, [&](Operation *op) { return getBefore(op); });
  }
  /// By data alone: with what their values are computed from.
  Set collectSources(ArrayRef<Operation *> roots) const {
    return collect(roots, [&](Operation *op) {
      SmallVector<Operation *> sources;
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          sources.push_back(def);
      return sources;
    });
  }
  Set collectAfter(ArrayRef<Operation *> roots) const {
    return collect(roots, [&](Operation *op) { return after.lookup(op); });
  }

private:
  template <typename Next> static Set collect(ArrayRef<Operation *> roots, Next next) {
    Set found(roots.begin(), roots.end());
    SmallVector<Operation *> pending(roots);
    while (!pending.empty())
      for (Operation *op : next(pending.pop_back_val()))
        if (found.insert(op).second)
          pending.push_back(op);
    return found;
  }

  dfg::NodeEdges nodes;
  llvm::StringMap<SmallVector<Operation *>> pushes; // by accumulator
  llvm::DenseMap<Operation *, SmallVector<Operation *>> after;
};

class ReadOrder {
public:
  explicit ReadOrder(WorkerGraph &worker) : worker(worker), edges(worker.block) {}

  LogicalResult run() {
    StringAttr train = worker.graph.getTrainOpAttr();
    Operation *end = train ? edges.find(train.getValue()) : nullptr;
    if (!end || !worker.hasPlaces())
      return success();
    const Edges::Set step = edges.collectBefore(end);
    if (failed(findKeptReads()))
      return failure();
    SmallVector<Operation *> updates;
    for (Operation *op : step)
      if (llvm::isa<dfg::UpdateInterface>(op) && op->hasAttr(dist::kPlaceAttr))
        updates.push_back(op);
    const Edges::Set late = edges.collectAfter(updates);
    SmallVector<Operation *> pushes, latePushes, lateTakes, lateUpdates;
    for (Operation *op : step) {
      // Of a variable of each worker's own; a copy of a server's is renewed behind the token.
      if ((llvm::isa<dfg::UpdateInterface>(op) || mayUpdate(op)) && !op->hasAttr(dist::kPlaceAttr) &&
          late.contains(op) && !isOfProxy(op, step))
        lateUpdates.push_back(op);
      // The chief's own come behind its updates.
      if (llvm::isa<dist::PushOp>(op) && !op->hasAttr(dist::kPlaceAttr) && late.contains(op))
        latePushes.push_back(op);
      if (auto push = llvm::dyn_cast<dist::PushOp>(op); push && isOfAllReplicas(push) && !late.contains(op))
        pushes.push_back(op);
      if (llvm::isa<dist::TakeOp>(op) && late.contains(op))
        lateTakes.push_back(op);
    }
    for (Operation *take : lateTakes)
      worker.servers.lateTakes.insert(dfg::getNodeName(take));
    for (Operation *op : edges.collectBefore(lateTakes))
      if (llvm::isa<dfg::UpdateInterface>(op))
        worker.servers.earlyUpdates.insert(op);

    // What merely runs behind such a read does not have its value.
    const Edges::Set waitedFor = edges.collectBefore(pushes), ofLatePushes = edges.collectSources(latePushes),
                     ofLateUpdates = edges.collectSources(lateUpdates);
    StringAttr lossName = worker.graph.getLossAttr();
    Operation *loss = lossName ? edges.find(lossName.getValue()) : nullptr;
    const Edges::Set ofLoss = loss ? edges.collectSources(loss) : Edges::Set();
    for (Operation *read : findReads(step)) {
      // Only the chief's own nodes come behind its updates.
      auto refuse = [&](StringRef why, StringRef instead) {
        return read->emitError() << "node '" << dfg::getNodeName(read) << "' reads variable '"
                                 << getVariable(read).getVariable()
                                 << "', which a server holds, behind an update of the same step, for " << why
                                 << ": workers cannot know when the chief has updated; all-reduce " << instead
                                 << ", or train with one worker";
      };
      if (worker.workers.size() > 1 && late.contains(read) && ofLatePushes.contains(read))
        return refuse("a gradient that every worker pushes", "that gradient");
      if (worker.workers.size() > 1 && late.contains(read) && ofLateUpdates.contains(read))
        return refuse("an update that every worker makes of a variable of its own", "the variable that is read");
      if (worker.workers.size() > 1 && late.contains(read) && ofLoss.contains(read))
        return refuse("the loss", "the variable that is read");
      if (waitedFor.contains(read) || late.contains(read))
        continue;
      if (keptReads.contains(read)) {
        waitForKept(read);
        continue;
      }
      // A reference is read where it is used; a resource's value is its reader's own.
      if (!isOfReference(read)) {
        worker.servers.reads.push_back(dfg::getNodeName(read).str());
        continue;
      }
      for (Operation *user : read->getUsers())
        if (!late.contains(user) && (step.contains(user) || fetched.contains(user)))
          worker.servers.reads.push_back(dfg::getNodeName(user).str());
    }
    // A copy is renewed at the end of a step: that all workers have done so, any element or gradient of the next one
    // says.
    const bool hasCopies = llvm::any_of(step, [&](Operation *op) { return isOfProxy(op, step); });
    worker.servers.waitsForReads =
        !worker.servers.reads.empty() || !worker.servers.readsThatMayBeDead.empty() || (hasCopies && pushes.empty());
    return success();
  }

private:
  bool isOfAllReplicas(dist::PushOp push) const {
    return !push.getAsync() && !push->hasAttr(dist::kPlaceAttr) &&
           static_cast<int64_t>(push.getRequired()) >= worker.replicas;
  }

  /// Whether it may be an update in control flow that is kept as it is: of a variable's handle, or of a reference that
  /// a condition hands on.
  static bool mayUpdate(Operation *op) {
    auto handsOn = [](Operation *op) {
      auto opaque = llvm::dyn_cast_or_null<dfg::OpaqueOp>(op);
      return opaque && opaque.getOp().starts_with("Ref");
    };
    return llvm::isa<dfg::OpaqueOp>(op) && !isMemoryEffectFree(op) && !handsOn(op) &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return dfg::isHandle(operand.getType()) || handsOn(operand.getDefiningOp());
           });
  }

  static Value getHandle(Operation *op) {
    if (auto pull = llvm::dyn_cast<dist::PullOp>(op))
      return pull.getHandle();
    if (auto rows = llvm::dyn_cast<dist::PullRowsOp>(op))
      return rows.getHandle();
    return {};
  }

  /// A step reads the worker's copy.
  static bool isOfProxy(Operation *read, const Edges::Set &step) {
    auto pull = llvm::dyn_cast<dist::PullOp>(read);
    return pull && pull.getProxy() && step.contains(pull);
  }

  dfg::VarHandleOp getVariable(Operation *read) const {
    if (Value handle = getHandle(read))
      return dfg::getVariableHandle(handle);
    return keptReads.lookup(read);
  }

  /// What reads variables of servers in control flow that is kept as it is: nodes that are given a handle through
  /// others (Enter, Switch), and nodes that run functions with it.
  LogicalResult findKeptReads() {
    llvm::FailureOr<dfg::Frames> found = dfg::Frames::find(worker.block);
    if (failed(found))
      return failure();
    frames = std::move(*found);
    behindSwitches = dfg::findBehind(worker.block,
                                     [&](Operation *op) { return dfg::getKind(op) == "Switch" && !frames.lookup(op); });
    llvm::DenseMap<Value, dfg::VarHandleOp> handedOn;
    for (Operation &op : worker.block) {
      if (auto variable = llvm::dyn_cast<dfg::VarHandleOp>(op)) {
        if (worker.getPlace(variable.getVariable()))
          handedOn[variable.getHandle()] = variable;
        continue;
      }
      for (Value operand : op.getOperands()) {
        dfg::VarHandleOp variable = handedOn.lookup(operand);
        if (!variable)
          continue;
        for (Value result : op.getResults())
          if (dfg::isHandle(result.getType()))
            handedOn[result] = variable;
        const bool givesValue = llvm::any_of(op.getResultTypes(), [](Type type) { return !dfg::isHandle(type); });
        const bool isKept = llvm::isa<dfg::OpaqueOp>(op) || !dfg::getVariableHandle(operand);
        if (givesValue && isKept && !getHandle(&op) && !llvm::isa<dfg::UpdateInterface>(op) &&
            !op.hasAttr(dist::kPlaceAttr))
          keptReads.try_emplace(&op, variable);
      }
    }
    return success();
  }

  /// No edge leads out of a frame but from its Exits.
  void waitForKept(Operation *read) {
    llvm::DenseSet<Operation *> seen = {read};
    SmallVector<Operation *> pending = {read};
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      dfg::Frame *frame = frames.lookup(op);
      if (!frame || (dfg::getKind(op) == "Exit" && !frame->parent)) {
        (behindSwitches.contains(op) ? worker.servers.readsThatMayBeDead : worker.servers.reads)
            .push_back(dfg::getNodeName(op).str());
        continue;
      }
      for (Operation *user : op->getUsers())
        if (seen.insert(user).second)
          pending.push_back(user);
    }
  }

  bool isOfReference(Operation *read) const {
    dfg::VarHandleOp variable = getVariable(read);
    return variable && worker.references.contains(variable.getVariable());
  }

  /// Reads of a step, and those of the loss and the fetches that go with it: what needs another feed than the step is
  /// asked for on its own.
  SmallVector<Operation *> findReads(const Edges::Set &step) {
    SmallVector<Operation *> roots;
    auto add = [&](Attribute name) {
      if (auto text = llvm::dyn_cast_if_present<StringAttr>(name))
        if (Operation *op = edges.find(text.getValue()))
          roots.push_back(op);
    };
    add(worker.graph.getLossAttr());
    if (ArrayAttr names = worker.graph.getFetchesAttr())
      llvm::for_each(names, add);
    fetched = edges.collectBefore(roots);
    SmallVector<Operation *> otherFeeds;
    for (auto placeholder : worker.block.getOps<dfg::PlaceholderOp>())
      if (!step.contains(placeholder))
        otherFeeds.push_back(placeholder);
    const Edges::Set needsOther = edges.collectAfter(otherFeeds);
    llvm::DenseSet<Operation *> kept;
    for (Operation *op : fetched)
      if (!needsOther.contains(op))
        kept.insert(op);
    fetched = std::move(kept);
    SmallVector<Operation *> reads;
    for (Operation &op : worker.block)
      if ((getHandle(&op) || keptReads.contains(&op)) && !isOfProxy(&op, step) &&
          (step.contains(&op) || fetched.contains(&op)))
        reads.push_back(&op);
    return reads;
  }

  WorkerGraph &worker;
  Edges edges;
  Edges::Set fetched;
  dfg::Frames frames;
  Edges::Set behindSwitches;
  llvm::MapVector<Operation *, dfg::VarHandleOp> keptReads;
};

} // namespace

LogicalResult findReads(WorkerGraph &worker) { return ReadOrder(worker).run(); }

} // namespace distc

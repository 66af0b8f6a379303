//===- ServeUpdates.cpp - Parts replicas' work from their servers' -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GatheredVariables.h"
#include "dialects/dfg/Gathers.h"
#include "dialects/dfg/NodeEdges.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/NumberedNodes.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/synchronize/RawGradients.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTSERVEUPDATES
#include "passes/distribute/Passes.h.inc"

namespace {

class GraphServer {
public:
  GraphServer(dfg::GraphOp graph, const Serving &serving, int64_t replicas)
      : graph(graph), block(graph.getBody().front()), serving(serving), replicas(replicas), step(graph),
        init(graph, graph.getInitOpAttr()), builder(graph.getContext()),
        place(dist::PlaceAttr::get(graph.getContext(), "worker", 0)) {}

  LogicalResult run() {
    // A graph that does not train has nothing to serve, and where no gradient is of a share nothing is pushed: every
    // task makes the same updates.
    if (!step.isKnown() || llvm::none_of(block, [](Operation &op) { return isReduction(&op); }))
      return success();
    for (Operation &op : block)
      if (failed(check(&op)))
        return failure();
    if (failed(findServed()))
      return failure();
    leaveOut();
    takeDraws();
    for (Operation &op : llvm::make_early_inc_range(block))
      if (served.contains(&op) && failed(supply(&op)))
        return failure();
    dfg::ShapeContext shapes;
    shapes.setReplicas(replicas);
    // Of the rows of a shard it is known how many there are at most.
    shapes.useBounds();
    if (failed(shapes.run(block)))
      return failure();
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op))
        pushAndTake(reduce);
      else if (auto gather = llvm::dyn_cast<dist::AllGatherSlicesOp>(op); gather && failed(pushAndTake(gather, shapes)))
        return failure();
    joinOwnFetches();
    for (auto read : llvm::make_early_inc_range(block.getOps<dfg::ReadVariableOp>()))
      pull(read);
    partControlEdges();
    keepEffects();
    endStep();
    return success();
  }

  const llvm::StringSet<> &getUpdated() const { return updated; }

private:
  static bool isReduction(Operation *op) {
    return llvm::isa_and_nonnull<dist::AllReduceOp, dist::AllGatherSlicesOp>(op);
  }
  static bool isReduced(Value value) { return isReduction(value.getDefiningOp()); }

  LogicalResult check(Operation *op) {
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
    if (reduce ? reduce.getCoupling() || reduce.getCompressionAttr() : dist::isCollective(op) && !isReduction(op))
      return op->emitError()
             << "node '" << dfg::getNodeName(op)
             << "' needs all replicas in one step, but with servers that serve on their own (sync: false, "
                "replicas_to_aggregate, staleness) each goes on by itself; take a synchronous strategy";
    return success();
  }

  /// In block order: updates of the step, what sees reduced values, and what reads a variable behind its update.
  LogicalResult findServed() {
    for (Operation &op : block) {
      // A fetch that is computed of reduced values is what the replica's own make of it.
      bool isServed = llvm::any_of(op.getOperands(), [&](Value operand) {
        return (isReduced(operand) && step.contains(&op)) || served.contains(operand.getDefiningOp());
      });
      if (isServed && isReduction(&op))
        return op.emitError()
               << "a gradient is computed from what an update of its own step leaves, but with servers that "
                  "serve on their own a replica has none before it pushes; take a synchronous strategy";
      if (!step.contains(&op)) {
        // A fetch, for which ExtractEntries says so.
        if (isServed)
          served.insert(&op);
        continue;
      }
      if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op)) {
        isServed = true;
        for (unsigned operand : update.getWrittenOperands())
          if (auto handle = dfg::getVariableHandle(op.getOperand(operand)))
            updated.insert(handle.getVariable());
      }
      if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op))
        if (auto handle = dfg::getVariableHandle(read.getHandle()))
          isServed |= updated.contains(handle.getVariable());
      // A group is where those are that it waits for: what trains is one, or an update.
      if (llvm::isa<dfg::GroupOp>(op))
        isServed |= llvm::any_of(dfg::getControlInputs(&op), [&](StringRef name) { return names.contains(name); });
      if (isServed) {
        served.insert(&op);
        names.insert(dfg::getNodeName(&op));
      }
    }
    return success();
  }

  /// What no endpoint needs of what servers compute (what functions of Keras give back of gradients that they clip) is
  /// nobody's: a replica has none of it, and a server not all that it may be computed of.
  void leaveOut() {
    NumberedNodes nodes(graph);
    const llvm::BitVector needed = nodes.findNeeded(graph);
    SmallVector<Operation *> unneeded;
    for (unsigned number = 0; number < nodes.size(); ++number)
      if (Operation *op = nodes[number]; !needed[number] && served.contains(op) && !step.contains(op))
        unneeded.push_back(op);
    for (Operation *op : unneeded)
      served.erase(op);
    dfg::eraseNodes(block, unneeded);
  }

  /// Random numbers that nothing but updates is made of (noise that is added to a gradient) a server draws, once an
  /// update, with what is computed of them.
  void takeDraws() {
    NumberedNodes nodes(graph);
    llvm::BitVector replicas(nodes.size()), within(nodes.size());
    SmallVector<unsigned> pending = nodes.findEndpoints(graph);
    llvm::erase_if(pending, [&](unsigned number) { return served.contains(nodes[number]); });
    for (unsigned number = 0; number < nodes.size(); ++number) {
      Operation *op = nodes[number];
      within[number] = !served.contains(op);
      if (within[number] && step.contains(op) && (isReduction(op) || op->getNumResults() == 0))
        pending.push_back(number);
    }
    for (unsigned number : pending)
      replicas.set(number);
    nodes.close(replicas, pending, within);
    llvm::BitVector drawn(nodes.size());
    for (unsigned number = 0; number < nodes.size(); ++number) {
      Operation *op = nodes[number];
      drawn[number] = within[number] && !replicas[number] && step.contains(op) &&
                      (drawsNumbers(op) || llvm::any_of(nodes.getOperands(number), [&](unsigned operand) {
                         return operand != NumberedNodes::kNone && drawn[operand];
                       }));
      if (drawn[number]) {
        served.insert(op);
        names.insert(dfg::getNodeName(op));
      }
    }
  }

  /// Gives a server's node what the server must compute itself.
  LogicalResult supply(Operation *op) {
    op->setAttr(dist::kPlaceAttr, place);
    for (OpOperand &operand : op->getOpOperands()) {
      if (dfg::isHandle(operand.get().getType()) || isReduced(operand.get()))
        continue;
      FailureOr<Value> there = getThere(operand.get(), op);
      if (failed(there))
        return failure();
      operand.set(*there);
    }
    return success();
  }

  /// `value` as the server computes it. Copies stand where their originals do: they read what those read.
  FailureOr<Value> getThere(Value value, Operation *user) {
    Operation *def = value.getDefiningOp();
    if (dfg::isHandle(value.getType()) || served.contains(def))
      return value;
    unsigned number = llvm::cast<OpResult>(value).getResultNumber();
    if (Operation *copy = copies.lookup(def))
      return Value(copy->getResult(number));
    auto feed = def->getAttrOfType<StringAttr>(dist::kFeedAttr);
    const bool isFeed = llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(def);
    if (isFeed ? feed && feed.getValue() == dist::kSharded
               : !isMemoryEffectFree(def) && !llvm::isa<dfg::ReadVariableOp>(def))
      return user->emitError() << "node '" << dfg::getNodeName(user)
                               << "' is part of an update, but it needs the value of node '" << dfg::getNodeName(def)
                               << "', which each replica has its own of and which is no gradient; take a synchronous "
                                  "strategy, or make it a feed that goes whole to every replica";
    SmallVector<Value> operands;
    for (Value operand : def->getOperands()) {
      FailureOr<Value> there = getThere(operand, user);
      if (failed(there))
        return failure();
      operands.push_back(*there);
    }
    // A feed is known by its name.
    if (isFeed && operands.empty())
      return value;
    builder.setInsertionPointAfter(def);
    Operation *copy = builder.clone(*def);
    copy->setOperands(operands);
    copy->setLoc(getLocation(dfg::getNodeName(def) + "/server"));
    copy->setAttr(dist::kPlaceAttr, place);
    copies[def] = copy;
    served.insert(copy);
    names.insert(dfg::getNodeName(copy));
    return Value(copy->getResult(number));
  }

  void pushAndTake(dist::AllReduceOp reduce) {
    builder.setInsertionPointAfter(reduce);
    for (auto [gradient, reduced, variable] :
         llvm::zip(reduce.getGradients(), reduce.getReduced(), reduce.getVariables().getAsRange<StringAttr>())) {
      takeOwn(gradient, reduced);
      if (reduced.use_empty())
        continue;
      dist::TakeOp take =
          pushAndTake(reduce.getReduction(), variable, gradient, reduced.getType(), reduce.getAggregatorAttr());
      reduced.replaceAllUsesWith(take.getGradient()[0]);
    }
    reduce.erase();
  }

  /// Of a sparse gradient the server joins the rows of an update's gradients.
  LogicalResult pushAndTake(dist::AllGatherSlicesOp gather, const dfg::ShapeContext &shapes) {
    builder.setInsertionPointAfter(gather);
    for (auto [own, joined] : llvm::zip(gather.getOperands(), gather.getResults()))
      takeOwn(own, joined);
    if (gather.use_empty()) {
      gather.erase();
      return success();
    }
    std::optional<dfg::Dims> sizes = shapes.getShape(gather.getIndices());
    if (!sizes || sizes->empty() || !sizes->front().isKnown() || sizes->front().dependsOnWholeBatch())
      return gather.emitError()
             << "the sparse gradient of variable '" << gather.getVariable()
             << "' has a number of rows that does not follow from a replica's share of the batch, which "
                "servers that serve on their own need to know; take a synchronous strategy";
    const dfg::Dim rows = sizes->front();
    dist::TakeOp take =
        pushAndTake(gather.getReduction(), gather.getVariableAttr(), gather.getOperands(), gather.getResultTypes());
    take.setRows(ArrayRef<int64_t>{rows.getScale(), rows.getOffset()});
    take.setPadded(rows.isBound());
    gather.replaceAllUsesWith(take.getResults());
    gather.erase();
    return success();
  }

  /// What no server computes sees the replica's own.
  void takeOwn(Value own, Value reduced) {
    for (OpOperand &use : llvm::make_early_inc_range(reduced.getUses()))
      if (!served.contains(use.getOwner())) {
        use.set(own);
        ofOwn.insert(use.getOwner());
      }
  }

  dist::TakeOp pushAndTake(dist::Reduction reduction, StringAttr variable, ValueRange gradient, TypeRange taken,
                           dist::AggregatorAttr aggregator = {}) {
    std::string name = "gradients/" + std::to_string(pushes.size()) + "/" + variable.str();
    auto push = dist::PushOp::create(builder, getLocation(name + "/push"), reduction, name, place, serving.required,
                                     gradient, variable, serving.staleness, serving.async, /*apart=*/false, aggregator);
    pushes.push_back(dfg::getNodeName(push).str());
    auto take =
        dist::TakeOp::create(builder, getLocation(name + "/take"), taken, reduction, name, place, serving.required,
                             variable, aggregator, serving.async, /*apart=*/false, /*rows=*/nullptr);
    take->setAttr(dist::kPlaceAttr, place);
    served.insert(take);
    return take;
  }

  /// What was the same in all replicas is each one's own: over all of them it is the mean.
  void joinOwnFetches() {
    auto joins = graph->getAttrOfType<DictionaryAttr>(dist::kJoinsAttr);
    if (!joins)
      return;
    llvm::StringMap<Operation *> nodes;
    for (Operation &op : block) {
      nodes[dfg::getNodeName(&op)] = &op;
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return ofOwn.contains(operand.getDefiningOp()); }))
        ofOwn.insert(&op);
    }
    NamedAttrList changed(joins);
    for (NamedAttribute join : joins)
      if (Operation *op = nodes.lookup(join.getName().getValue().split(':').first); op && ofOwn.contains(op))
        if (llvm::isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
          changed.set(join.getName(), builder.getStringAttr("mean"));
    graph->setAttr(dist::kJoinsAttr, changed.getDictionary(graph.getContext()));
  }

  /// What replicas read of variables that servers update.
  void pull(dfg::ReadVariableOp read) {
    auto handle = dfg::getVariableHandle(read.getHandle());
    if (!handle || !updated.contains(handle.getVariable()) || served.contains(read) ||
        (init.contains(read) && !step.contains(read)))
      return;
    // An entry has no more of the value than it needs.
    pullRows(read.getValue(), read.getHandle());
    builder.setInsertionPoint(read);
    auto pulled =
        dist::PullOp::create(builder, getPullLocation(read), read.getValue().getType(), read.getHandle(), place, false);
    if (Attribute control = read->getAttr(dfg::kControlAttr))
      pulled->setAttr(dfg::kControlAttr, control);
    read.getValue().replaceAllUsesWith(pulled.getValue());
    read.erase();
  }

  /// Rows whose numbers are known before anything is pulled come with the variables, all as the same update left them.
  bool choosesRows(OpOperand &use) {
    Operation *op = use.getOwner();
    return llvm::isa<dfg::GatherOp, dfg::GatherV2Op>(op) && use.getOperandNumber() == 0 && dfg::takesRows(op) &&
           isKnownBefore(op->getOperand(1));
  }

  bool isKnownBefore(Value value) {
    Operation *def = value.getDefiningOp();
    auto [it, isNew] = knownBefore.insert({def, false});
    if (!isNew)
      return it->second;
    const bool isKnown = !served.contains(def) && def->getNumRegions() == 0 &&
                         (llvm::isa<dfg::PlaceholderOp>(def) || isMemoryEffectFree(def) || drawsNumbers(def)) &&
                         llvm::all_of(def->getOperands(), [&](Value operand) {
                           return !dfg::isHandle(operand.getType()) && isKnownBefore(operand);
                         });
    return knownBefore[def] = isKnown;
  }

  /// From a generator of its own, whatever is computed before.
  static bool drawsNumbers(Operation *op) {
    return op->hasTrait<dfg::DrawsNumbers>() ||
           llvm::isa<dfg::LogUniformCandidateSamplerOp, dfg::UniformCandidateSamplerOp,
                     dfg::FixedUnigramCandidateSamplerOp>(op);
  }

  /// All that takes rows of a variable's value, which others hand on.
  void pullRows(Value value, Value handle) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      if (choosesRows(use))
        pullRows(user, handle);
      else if (llvm::isa<dfg::IdentityOp>(user))
        pullRows(user->getResult(0), handle);
    }
  }

  void pullRows(Operation *gather, Value handle) {
    builder.setInsertionPoint(gather);
    auto rows = dist::PullRowsOp::create(builder, gather->getLoc(), gather->getResult(0).getType(), handle,
                                         gather->getOperand(1), place, IntegerAttr());
    if (Attribute control = gather->getAttr(dfg::kControlAttr))
      rows->setAttr(dfg::kControlAttr, control);
    gather->getResult(0).replaceAllUsesWith(rows.getRows());
    gather->erase();
  }

  /// The replica's part of the step is what its pushes need, and what gives nothing but may end the program:
  /// assertions.
  void keepEffects() {
    SmallVector<StringRef> effects;
    for (Operation &op : block)
      if (op.getNumResults() == 0 && step.contains(&op) && !served.contains(&op) &&
          !llvm::isa<dfg::GroupOp, dist::PushOp>(op))
        effects.push_back(dfg::getNodeName(&op));
    if (dist::PushOp push = findFirstPush(); push && !effects.empty())
      push->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(effects));
  }

  dist::PushOp findFirstPush() {
    auto pushes = block.getOps<dist::PushOp>();
    return pushes.empty() ? dist::PushOp() : *pushes.begin();
  }

  void endStep() {
    if (serving.async)
      return;
    builder.setInsertionPointToEnd(&block);
    auto tokens = dist::TokensOp::create(builder, getLocation(getFreeName(block, "synchronization/tokens")), place,
                                         replicas, serving.staleness);
    SmallVector<StringRef> before(pushes.begin(), pushes.end());
    tokens->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(before));
  }

  /// Neither waits for the other's nodes by name: gradients and tokens order them.
  void partControlEdges() {
    for (Operation &op : block) {
      SmallVector<StringRef> control = dfg::getControlInputs(&op), kept;
      for (StringRef name : control)
        if (names.contains(name) == served.contains(&op))
          kept.push_back(name);
      if (kept.size() != control.size())
        op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(kept));
    }
  }

  Location getLocation(const Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  dfg::GraphOp graph;
  Block &block;
  const Serving &serving;
  const int64_t replicas;
  strategies::StepNodes step, init;
  OpBuilder builder;
  dist::PlaceAttr place;
  llvm::DenseSet<Operation *> served;
  /// What a fetch is computed by, of the replica's own values in place of reduced ones.
  llvm::DenseSet<Operation *> ofOwn;
  llvm::StringSet<> names, updated; // of served nodes; variables
  llvm::DenseMap<Operation *, Operation *> copies;
  llvm::DenseMap<Operation *, bool> knownBefore; // what follows from feeds alone
  SmallVector<std::string> pushes;
};

struct DistServeUpdates : public impl::DistServeUpdatesBase<DistServeUpdates> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
    if (failed(applied))
      return signalPassFailure();
    std::optional<Serving> serving = getServing(module, *applied);
    if (!serving)
      return markAllAnalysesPreserved();
    llvm::StringSet<> updated;
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      // What replicas take rows of is pulled like anything else that they read.
      if (strategies::StepNodes(graph).isKnown())
        dfg::readGatheredVariables(graph.getBody().front());
      GraphServer server(graph, *serving, static_cast<int64_t>(applied->topology.getReplicas()));
      if (failed(server.run()))
        return signalPassFailure();
      updated.insert_range(server.getUpdated().keys());
    }
    auto place = dist::PlaceAttr::get(&getContext(), "worker", 0);
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (updated.contains(variable.getSymName()))
        variable->setAttr(dist::kPlaceAttr, place);
      else
        variable->removeAttr(dist::kPlaceAttr);
  }
};

} // namespace
} // namespace distc

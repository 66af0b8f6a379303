//===- VerifyCollectives.cpp - No task waits for what never comes -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/NumberedNodes.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/servers/Roles.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTVERIFYCOLLECTIVES
#include "passes/distribute/Passes.h.inc"

namespace {

int64_t getBucket(Operation *op) { return op->getAttrOfType<IntegerAttr>("bucket").getInt(); }

/// Names of programs in messages.
std::string describe(dfg::GraphOp graph) {
  auto role = graph->getAttrOfType<StringAttr>(dist::kRoleAttr);
  if (!role)
    return "the program of all tasks";
  if (dist::PlaceAttr place = getPlace(graph))
    return "the program of server " + std::to_string(place.getIndex());
  return ("the program of role " + role.getValue()).str();
}

class Verifier {
public:
  explicit Verifier(ModuleOp module) : module(module) {}

  LogicalResult run() {
    FailureOr<dist::TopologyOp> found = dist::getTopology(module);
    if (failed(found))
      return failure();
    topology = *found;
    for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>())
      if (task.getJob() == "ps")
        servers.insert(task.getIndex());
    for (auto variable : module.getOps<dfg::VariableOp>()) {
      dist::PlaceAttr place = getPlace(variable);
      places[variable.getSymNameAttr()] = place;
      if (place && failed(checkPlace(variable, place)))
        return failure();
    }
    for (auto graph : module.getOps<dfg::GraphOp>())
      if (failed(check(graph)))
        return failure();
    return success(succeeded(compareWorkers()) && succeeded(matchPushes()));
  }

private:
  LogicalResult checkPlace(Operation *op, dist::PlaceAttr place) {
    if (!isServer(place) || servers.contains(place.getIndex()))
      return success();
    return op->emitError() << "is placed on " << place.getJob() << ":" << place.getIndex()
                           << ", which is no task of the topology";
  }

  LogicalResult check(dfg::GraphOp graph) {
    if (failed(checkOrder(graph)) || failed(checkDrawing(graph)))
      return failure();
    int64_t last = -1;
    auto role = graph->getAttrOfType<StringAttr>(dist::kRoleAttr);
    for (Operation &op : graph.getBody().front()) {
      if (dist::isCollective(&op)) {
        if (getBucket(&op) <= last)
          return op.emitError() << "is issued as bucket " << getBucket(&op) << " after bucket " << last
                                << "; all replicas issue buckets in the order of their numbers";
        last = getBucket(&op);
        if (getPlace(&op) || (role && role.getValue() == "server"))
          return op.emitError("is a collective of all replicas, but one task alone issues it");
      }
      if (auto push = llvm::dyn_cast<dist::PushOp>(op))
        pushes[push.getAccumulatorAttr()].push_back(push);
      else if (auto take = llvm::dyn_cast<dist::TakeOp>(op))
        takes[take.getAccumulatorAttr()].push_back(take);
      else if (auto tokens = llvm::dyn_cast<dist::TokensOp>(op);
               tokens && static_cast<int64_t>(tokens.getReplicas()) != static_cast<int64_t>(topology.getReplicas()))
        return op.emitError() << "gives tokens to " << tokens.getReplicas() << " replicas of "
                              << topology.getReplicas();
      if (failed(role ? checkRole(&op, graph, role.getValue()) : checkBorders(&op)))
        return failure();
    }
    return success();
  }

  /// What replicas draw for the examples of their shares is part of what one draws for all: dist-replicate says so.
  LogicalResult checkDrawing(dfg::GraphOp graph) {
    SmallVector<Operation *> silent;
    for (Operation &op : graph.getBody().front())
      if (op.hasTrait<dfg::DrawsNumbers>() && !op.hasAttr(dist::kSeedAttr))
        if (auto type = llvm::dyn_cast<RankedTensorType>(op.getResult(0).getType());
            !type || (type.getRank() > 0 && type.isDynamicDim(0)))
          silent.push_back(&op);
    if (silent.empty() || topology.getReplicas() < 2)
      return success();
    FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
    if (failed(flow))
      return failure();
    for (Operation *op : silent)
      if (flow->get(op->getResult(0)).isSharded(0))
        return op->emitError() << "node '" << dfg::getNodeName(op)
                               << "' draws numbers for each replica's share of the batch without 'dist.seed', so that "
                                  "all would draw the same ones; run dist-replicate";
    return success();
  }

  /// No node that an endpoint needs stands before what it waits for: who moves a node or gives its name to another one
  /// must mind the control edges that name it. What waits for a later member of its own collective would wait for
  /// itself.
  static LogicalResult checkOrder(dfg::GraphOp graph) {
    NumberedNodes nodes(graph);
    const llvm::BitVector needed = nodes.findNeeded(graph);
    for (unsigned number : needed.set_bits())
      for (unsigned before : nodes.getControl(number))
        if (before != NumberedNodes::kNone && before > number)
          return (nodes[before]->emitError()
                  << "stands behind node '" << dfg::getNodeName(nodes[number]) << "', which waits for it")
                     .attachNote(nodes[number]->getLoc())
                 << "it waits here";
    return success();
  }

  /// Whether an endpoint needs the node.
  static bool isNeeded(Operation *op) {
    auto graph = op->getParentOfType<dfg::GraphOp>();
    NumberedNodes nodes(graph);
    const llvm::BitVector needed = nodes.findNeeded(graph);
    if (needed.none())
      return true;
    const unsigned number = nodes.find(dfg::getNodeNameAttr(op));
    return number == NumberedNodes::kNone || needed[number];
  }

  /// In the program of all tasks: nothing that one task computes is used by another.
  LogicalResult checkBorders(Operation *op) {
    dist::PlaceAttr place = getPlace(op);
    if (place && failed(checkPlace(op, place)))
      return failure();
    bool onlyWorkers = op->hasTrait<dist::Collective>() ||
                       llvm::isa<dfg::PlaceholderOp, dist::PullOp, dist::PullRowsOp, dist::TakeRowsOp>(op);
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (dfg::isHandle(operand.getType())) {
        if (failed(checkHandle(op, operand, place)))
          return failure();
        auto variable = dfg::getVariableHandle(operand);
        onlyWorkers |= !place && variable && !places.lookup(variable.getVariableAttr().getAttr());
        continue;
      }
      dist::PlaceAttr from = getPlace(def);
      if (from && from != place)
        return op->emitError() << "uses the value of node '" << dfg::getNodeName(def) << "', which only "
                               << from.getJob() << ":" << from.getIndex() << " computes, and nothing sends it"
                               << (isNeeded(op)
                                       ? ""
                                       : "; no endpoint needs it, as a summary of gradients that are processed: "
                                         "leave it out of the graph, or take one server (--ps 1) or AllReduce");
      if (isServer(place) && workersOnly.contains(def))
        return op->emitError() << "runs on " << place.getJob() << ":" << place.getIndex() << ", but the value of node '"
                               << dfg::getNodeName(def) << "' depends on what only workers have, and nothing sends it";
      onlyWorkers |= !place && workersOnly.contains(def);
    }
    if (onlyWorkers)
      workersOnly.insert(op);
    return success();
  }

  LogicalResult checkHandle(Operation *op, Value operand, dist::PlaceAttr place) {
    auto variable = dfg::getVariableHandle(operand);
    dist::PlaceAttr holder = variable ? places.lookup(variable.getVariableAttr().getAttr()) : dist::PlaceAttr();
    if (holder == place || (!holder && !isServer(place)))
      return success();
    // Views, pulls and savers may have the handle anywhere.
    if (!llvm::isa<dfg::UpdateInterface, dfg::ReadVariableOp>(op) || !isServer(holder) ||
        (!isServer(place) && llvm::isa<dfg::AssignOp>(op)))
      return success();
    return op->emitError() << "accesses variable '" << variable.getVariable() << "', which server " << holder.getIndex()
                           << " holds; it must run there, or pull";
  }

  LogicalResult checkRole(Operation *op, dfg::GraphOp graph, llvm::StringRef role) {
    if (!llvm::isa<dfg::UpdateInterface, dfg::ReadVariableOp>(op))
      return success();
    for (Value operand : op->getOperands()) {
      if (!dfg::isHandle(operand.getType()))
        continue;
      auto variable = dfg::getVariableHandle(operand);
      if (!variable || places.lookup(variable.getVariableAttr().getAttr()) == getPlace(graph))
        continue;
      return op->emitError() << "accesses variable '" << variable.getVariable() << "', which " << describe(graph)
                             << " does not hold";
    }
    return success();
  }

  /// Chief and workers issue the same collectives in the same order.
  LogicalResult compareWorkers() {
    SmallVector<Operation *> first;
    dfg::GraphOp firstGraph;
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      if (isServer(getPlace(graph)))
        continue;
      SmallVector<Operation *> collectives;
      for (Operation &op : graph.getBody().front())
        if (dist::isCollective(&op))
          collectives.push_back(&op);
      if (!firstGraph) {
        firstGraph = graph;
        first = std::move(collectives);
        continue;
      }
      for (size_t number = 0; number < std::max(first.size(), collectives.size()); ++number) {
        Operation *x = number < first.size() ? first[number] : nullptr;
        Operation *y = number < collectives.size() ? collectives[number] : nullptr;
        if (x && y && x->getName() == y->getName() && x->getAttrDictionary() == y->getAttrDictionary() &&
            llvm::equal(x->getOperandTypes(), y->getOperandTypes()))
          continue;
        InFlightDiagnostic error = (y ? y : x)->emitError()
                                   << "collective " << number << " of " << describe(y ? graph : firstGraph)
                                   << " is not that of " << describe(y ? firstGraph : graph)
                                   << "; all members of a group issue the same collectives in the same order";
        if (x && y)
          error.attachNote(x->getLoc()) << "the other one is here";
        return error;
      }
    }
    return success();
  }

  LogicalResult matchPushes() {
    for (auto &entry : takes) {
      dist::TakeOp take = entry.second.front();
      auto *found = pushes.find(entry.first);
      if (found == pushes.end())
        return take.emitError() << "waits for accumulator \"" << entry.first.getValue()
                                << "\", to which nothing is pushed";
      if (entry.second.size() > 1)
        return entry.second.back().emitError() << "is the second that takes from accumulator \""
                                               << entry.first.getValue() << "\"; one takes, once a step";
      for (dist::PushOp push : found->second)
        if (failed(match(push, take)))
          return failure();
    }
    for (auto &entry : pushes)
      if (!takes.contains(entry.first))
        return entry.second.front().emitError()
               << "pushes to accumulator \"" << entry.first.getValue() << "\", from which nothing is taken";
    return success();
  }

  LogicalResult match(dist::PushOp push, dist::TakeOp take) {
    auto mismatch = [&](llvm::StringRef what) {
      InFlightDiagnostic error = push.emitError() << "differs in " << what << " from what takes from accumulator \""
                                                  << push.getAccumulator() << "\"";
      error.attachNote(take.getLoc()) << "it is taken here";
      return error;
    };
    if (push.getPlace() != take.getPlace())
      return mismatch("its server");
    if (push.getReduction() != take.getReduction())
      return mismatch("its reduction");
    if (push.getRequired() != take.getRequired() || push.getAsync() != take.getAsync())
      return mismatch("how many gradients it waits for");
    if (push.getGradient().size() != take.getGradient().size())
      return mismatch("whether the gradient is sparse");
    if (push.getApart() != take.getApart())
      return mismatch("whether rows of one index are added");
    if (push.getApart() && push.getRequired() != topology.getReplicas())
      return push.emitError() << "keeps the rows of each of " << topology.getReplicas() << " replicas apart, but "
                              << push.getRequired() << " gradients are waited for";
    for (auto [given, taken] : llvm::zip(push.getGradient().getTypes(), take.getGradient().getTypes()))
      if (failed(verifyCompatibleShape(given, taken)) || getElementTypeOrSelf(given) != getElementTypeOrSelf(taken))
        return mismatch("its type");
    if (getPlace(push) && push.getRequired() > 1)
      return push.emitError() << "comes once a step, from the chief, but " << push.getRequired() << " are waited for";
    return checkPlace(push, push.getPlace());
  }

  ModuleOp module;
  dist::TopologyOp topology;
  llvm::DenseSet<int64_t> servers;
  llvm::DenseMap<StringAttr, dist::PlaceAttr> places;
  llvm::DenseSet<Operation *> workersOnly;
  // In block order, so that the first error is.
  llvm::MapVector<StringAttr, SmallVector<dist::PushOp, 1>> pushes;
  llvm::MapVector<StringAttr, SmallVector<dist::TakeOp, 1>> takes;
};

struct DistVerifyCollectives : public impl::DistVerifyCollectivesBase<DistVerifyCollectives> {
  void runOnOperation() override {
    if (failed(Verifier(getOperation()).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace distc

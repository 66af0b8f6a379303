//===- Servers.cpp - What servers run, and what they are sent ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Gathers.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/servers/UpdatePlacement.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
namespace {

class Servers {
public:
  Servers(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step,
          const llvm::DenseSet<Operation *> &consumers, const UpdatePlacement &placement)
      : graph(graph), block(graph.getBody().front()), policies(policies), step(step),
        init(graph, graph.getInitOpAttr()), consumers(consumers), placement(placement), builder(graph.getContext()) {}

  LogicalResult run() {
    for (Operation &op : block)
      mark(&op);
    markDeadEnds();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (dist::PlaceAttr place = getPlace(&op); isServer(place) && failed(supply(&op, place)))
        return failure();
      found[&op] = findWhereKnown(&op);
    }
    leaveOut();
    late = dfg::findBehind(block, [&](Operation *op) { return isInStep(op) && llvm::isa<dfg::UpdateInterface>(op); });
    SmallVector<Operation *> readers;
    for (Operation &op : block) {
      if (op.hasTrait<dfg::ReadsVariable>() || llvm::isa<dfg::UpdateInterface>(op))
        readers.push_back(&op);
      for (llvm::StringRef name : dfg::getControlInputs(&op))
        named.insert(name);
    }
    for (Operation *op : readers)
      pull(op);
    endStep();
    return success();
  }

private:
  /// Where a value can be computed without anything from elsewhere.
  struct Where {
    enum Kind { Everywhere, Server, Worker } kind = Worker;
    dist::PlaceAttr place;
  };

  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  /// The server that holds the variable of `handle`; null: none, or not known.
  dist::PlaceAttr getHolder(Value handle) const {
    auto variable = dfg::getVariableHandle(handle);
    return variable ? policies.get(variable.getVariable()).place : dist::PlaceAttr();
  }

  Location getLocation(const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  void mark(Operation *op) {
    if (llvm::isa<dfg::UpdateInterface>(op)) {
      // Restoring is the saver's: it is no part of a step or of the initialization.
      if (dist::PlaceAttr place = policies.get(getUpdatedVariable(op)).place;
          place && (isInStep(op) || init.contains(op)))
        op->setAttr(dist::kPlaceAttr, place);
    } else if (consumers.contains(op)) {
      if (dist::PlaceAttr place = placement.get(op))
        op->setAttr(dist::kPlaceAttr, place);
    } else if (llvm::any_of(op->getOperands(), [&](Value operand) {
                 Operation *def = operand.getDefiningOp();
                 return def && getPlace(def) == placement.getChief();
               })) {
      // A shape of what the chief alone computes.
      op->setAttr(dist::kPlaceAttr, placement.getChief());
    }
  }

  /// What nothing takes, and only control edges name, is where its operands are: an exit of a gradient's loop, of whose
  /// result the server alone knows.
  void markDeadEnds() {
    for (Operation &op : llvm::reverse(block))
      if (!getPlace(&op) && isMemoryEffectFree(&op) &&
          llvm::all_of(op.getUsers(), [&](Operation *user) { return deadEnds.contains(user); }))
        deadEnds.insert(&op);
    for (Operation &op : block) {
      if (!deadEnds.contains(&op))
        continue;
      for (Value operand : op.getOperands())
        if (Operation *def = operand.getDefiningOp(); def && isServer(getPlace(def)))
          op.setAttr(dist::kPlaceAttr, getPlace(def));
    }
  }

  Where findWhereKnown(Operation *op) {
    if (dist::PlaceAttr place = getPlace(op))
      return {isServer(place) ? Where::Server : Where::Worker, place};
    if (llvm::isa<dfg::VarHandleOp>(op))
      return {Where::Everywhere, {}};
    if (llvm::isa<dfg::UpdateInterface, dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(op))
      return {};
    Where where{Where::Everywhere, {}};
    bool hasHandle = false;
    for (Value operand : op->getOperands()) {
      Where at = operand.getDefiningOp() ? found.lookup(operand.getDefiningOp()) : Where();
      if (dfg::isHandle(operand.getType())) {
        hasHandle = true;
        dist::PlaceAttr holder = getHolder(operand);
        at = holder ? Where{Where::Server, holder} : Where();
      }
      if (at.kind == Where::Worker || (at.kind == Where::Server && where.place && where.place != at.place))
        return {};
      if (at.kind == Where::Server)
        where = at;
    }
    bool isRead = llvm::isa<dfg::ReadVariableOp, dfg::ResourceGatherOp>(op);
    if (isMemoryEffectFree(op) || isRead)
      return where;
    // Random initial values: drawn once, by whoever initializes. What chooses between a variable's value and another.
    return !isInStep(op) && (!hasHandle || where.kind == Where::Server) && op->getNumResults() > 0 ? where : Where();
  }

  /// Gives a node that a server runs what it cannot compute there.
  LogicalResult supply(Operation *op, dist::PlaceAttr place) {
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      if (!def || dfg::isHandle(operand.get().getType()))
        continue;
      Where where = found.lookup(def);
      if (where.kind == Where::Everywhere)
        continue;
      if (where.kind == Where::Server && where.place == place) {
        operand.set(getThere(operand.get(), place));
        continue;
      }
      if (!isInStep(op) && deadEnds.contains(op)) {
        leftOut.insert(op);
        return success();
      }
      // The chief initializes what servers hold, whatever it needs for that.
      if (!isInStep(op)) {
        op->setAttr(dist::kPlaceAttr, placement.getChief());
        return success();
      }
      operand.set(send(operand.get(), op, place));
    }
    return success();
  }

  /// Takes out what no endpoint needs and no task has all of: a summary of gradients that several servers make.
  void leaveOut() {
    if (leftOut.empty())
      return;
    NumberedNodes nodes(graph);
    const llvm::BitVector needed = nodes.findNeeded(graph);
    for (size_t next = 0; next < leftOut.size(); ++next)
      for (Operation *user : leftOut[next]->getUsers())
        leftOut.insert(user);
    // What is needed is an error where that is looked for.
    for (unsigned number = 0; number < nodes.size(); ++number)
      if (needed[number] && leftOut.contains(nodes[number]))
        return;
    Operation *first = leftOut.front();
    InFlightDiagnostic remark = first->emitRemark() << "node '" << dfg::getNodeName(first) << "'";
    if (leftOut.size() > 1)
      remark << " and " << leftOut.size() - 1 << " more that are computed of it are";
    else
      remark << " is";
    remark << " left out of the graph: no endpoint needs it, and no task has all that it is computed of, values of "
              "several servers, or of a server and of workers (a summary of gradients that are processed)";
    for (Operation *op : leftOut)
      found.erase(op);
    dfg::eraseNodes(block, leftOut.getArrayRef());
  }

  /// `value` as the server computes it: its nodes move there, or are copied where workers need them too.
  Value getThere(Value value, dist::PlaceAttr place) {
    Operation *def = value.getDefiningOp();
    if (getPlace(def) == place)
      return value;
    unsigned number = llvm::cast<OpResult>(value).getResultNumber();
    if (Operation *copy = copies.lookup({def, place}))
      return copy->getResult(number);
    bool isAlone = llvm::all_of(def->getUsers(), [&](Operation *user) { return getPlace(user) == place; });
    Operation *there = def;
    if (!isAlone) {
      builder.setInsertionPointAfter(def);
      there = builder.clone(*def);
      there->setLoc(getLocation(dfg::getNodeName(def) + "/" + place.getJob() + "_" + llvm::Twine(place.getIndex())));
      copies[{def, place}] = there;
    }
    there->setAttr(dist::kPlaceAttr, place);
    found[there] = {Where::Server, place};
    for (OpOperand &operand : there->getOpOperands())
      if (Operation *from = operand.get().getDefiningOp();
          from && !dfg::isHandle(operand.get().getType()) && found.lookup(from).kind == Where::Server)
        operand.set(getThere(operand.get(), place));
    return there->getResult(number);
  }

  /// A value that only workers have, pushed to the server: by the chief, or by each replica where nothing waits.
  Value send(Value value, Operation *user, dist::PlaceAttr place) {
    llvm::StringRef variable = getUpdatedVariable(user);
    bool async = policies.get(variable).async;
    auto [it, isNew] = sent.insert({{value, place, unsigned(async)}, Value()});
    if (!isNew)
      return it->second;
    Operation *def = value.getDefiningOp();
    builder.setInsertionPointAfter(def);
    std::string name = ("synchronization/sent/" + llvm::Twine(sent.size() - 1)).str();
    // Only updates have a variable; what is before them is named by the value.
    if (!llvm::isa<dfg::UpdateInterface>(user))
      variable = dfg::getNodeName(def);
    auto push = dist::PushOp::create(builder, getLocation(name + "/push"), dist::Reduction::Sum, name, place, 1, value,
                                     variable, 0, async, false, /*aggregator=*/nullptr);
    if (!async)
      push->setAttr(dist::kPlaceAttr, placement.getChief());
    auto take = dist::TakeOp::create(builder, getLocation(name + "/take"), value.getType(), dist::Reduction::Sum, name,
                                     place, 1, variable, dist::AggregatorAttr(), async, false, /*rows=*/nullptr);
    take->setAttr(dist::kPlaceAttr, place);
    found[take] = {Where::Server, place};
    return it->second = take.getGradient()[0];
  }

  /// Workers' reads of what a server holds.
  void pull(Operation *op) {
    if (isServer(getPlace(op))) {
      pullUpdated(op);
      return;
    }
    if (auto gather = llvm::dyn_cast<dfg::ResourceGatherOp>(op)) {
      if (dist::PlaceAttr holder = getHolder(gather.getHandle()); holder && gather.getBatchDims() == 0)
        pullRows(op, gather.getHandle(), gather.getIndices(), holder);
      return;
    }
    auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op);
    dist::PlaceAttr holder = read ? getHolder(read.getHandle()) : dist::PlaceAttr();
    if (!holder)
      return;
    if (!op->use_empty() && llvm::all_of(op->getUses(), choosesRows)) {
      for (Operation *gather : llvm::make_early_inc_range(op->getUsers()))
        pullRows(gather, read.getHandle(), gather->getOperand(1), holder);
      if (!named.contains(dfg::getNodeName(op))) {
        op->erase();
        return;
      }
    }
    builder.setInsertionPoint(op);
    auto pulled = dist::PullOp::create(builder, getPullLocation(read), op->getResult(0).getType(), read.getHandle(),
                                       holder, isProxy(read.getHandle()) && !late.contains(op));
    copyAttributes(op, pulled);
    op->getResult(0).replaceAllUsesWith(pulled.getValue());
    op->erase();
  }

  /// What a reference variable's update gives: its new value.
  void pullUpdated(Operation *op) {
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    if (!update || op->getNumResults() == 0 || op->use_empty())
      return;
    Value pulled;
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      if (isServer(getPlace(use.getOwner())))
        continue;
      if (!pulled) {
        Value handle = op->getOperand(update.getWrittenOperands().front());
        builder.setInsertionPointAfter(op);
        pulled = dist::PullOp::create(builder, getLocation(dfg::getNodeName(op) + "/pull"), op->getResult(0).getType(),
                                      handle, getPlace(op), false);
      }
      use.set(pulled);
    }
  }

  static bool choosesRows(OpOperand &use) {
    Operation *op = use.getOwner();
    return llvm::isa<dfg::GatherV2Op>(op) && use.getOperandNumber() == 0 && !getPlace(op) && dfg::takesRows(op);
  }

  void pullRows(Operation *gather, Value handle, Value indices, dist::PlaceAttr holder) {
    builder.setInsertionPoint(gather);
    auto rows = dist::PullRowsOp::create(builder, gather->getLoc(), gather->getResult(0).getType(), handle, indices,
                                         holder, IntegerAttr());
    copyAttributes(gather, rows);
    gather->getResult(0).replaceAllUsesWith(rows.getRows());
    gather->erase();
  }

  static void copyAttributes(Operation *from, Operation *to) {
    for (llvm::StringRef name : {dfg::kControlAttr, dfg::kDeviceAttr})
      if (Attribute attribute = from->getAttr(name))
        to->setAttr(name, attribute);
  }

  bool isProxy(Value handle) const { return policies.get(dfg::getVariableHandle(handle).getVariable()).proxy; }

  /// Behind all pushes and updates of the step: the tokens, or a group where nothing waits; training waits for it.
  void endStep() {
    Operation *train = findTrainOp();
    llvm::StringRef trainName = train ? dfg::getNodeName(train) : "";
    // A server's update cannot end a worker's step: its name goes to a node that does.
    bool isUpdate = train && isServer(getPlace(train));
    if (isUpdate)
      train->setLoc(getLocation(getFreeName(block, trainName + "/update")));
    SmallVector<llvm::StringRef> before;
    for (Operation &op : block)
      if (llvm::isa<dist::PushOp>(op) ||
          (llvm::isa<dfg::UpdateInterface>(op) && isServer(getPlace(&op)) && policies.hasSync && isInStep(&op)))
        before.push_back(dfg::getNodeName(&op));
    builder.setInsertionPointToEnd(&block);
    Operation *end;
    if (policies.hasSync)
      end = dist::TokensOp::create(builder, getLocation("synchronization/tokens"),
                                   dist::PlaceAttr::get(builder.getContext(), "ps", 0), policies.replicas,
                                   policies.staleness);
    else
      end = dfg::GroupOp::create(builder, getLocation("synchronization/pushes"));
    end->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(before));
    if (isUpdate) {
      Operation *group = dfg::GroupOp::create(builder, getLocation(trainName));
      group->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({dfg::getNodeName(train), dfg::getNodeName(end)}));
    } else if (train) {
      SmallVector<llvm::StringRef> control = dfg::getControlInputs(train);
      control.push_back(dfg::getNodeName(end));
      train->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(control));
      if (train->use_empty())
        train->moveBefore(&block, block.end());
    }
  }

  Operation *findTrainOp() {
    StringAttr name = graph.getTrainOpAttr();
    if (name)
      for (Operation &op : block)
        if (dfg::getNodeName(&op) == name.getValue().split(':').first)
          return &op;
    return nullptr;
  }

  dfg::GraphOp graph;
  Block &block;
  const SyncPolicies &policies;
  const strategies::StepNodes &step;
  strategies::StepNodes init;
  const llvm::DenseSet<Operation *> &consumers;
  const UpdatePlacement &placement;
  OpBuilder builder;
  llvm::DenseMap<Operation *, Where> found;
  /// What nothing takes, and of that, what no task has all of, with what is computed of it.
  llvm::DenseSet<Operation *> deadEnds;
  llvm::SetVector<Operation *> leftOut;
  llvm::StringSet<> named; // by control edges
  /// What runs behind an update of its own step. A worker's copy does not have the new value before the step's end.
  llvm::DenseSet<Operation *> late;
  llvm::DenseMap<std::pair<Operation *, Attribute>, Operation *> copies;
  llvm::DenseMap<std::tuple<Value, Attribute, unsigned>, Value> sent;
};

} // namespace

LogicalResult finishServers(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step,
                            const llvm::DenseSet<Operation *> &consumers, const UpdatePlacement &placement) {
  return Servers(graph, policies, step, consumers, placement).run();
}

} // namespace distc

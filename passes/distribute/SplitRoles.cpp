//===- SplitRoles.cpp - A program a role ----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/Roles.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTSPLITROLES
#include "passes/distribute/Passes.h.inc"

namespace {

/// The graph of one server: its own nodes, and what can be computed anywhere and they need.
class ServerGraph {
public:
  ServerGraph(dfg::GraphOp whole, dist::PlaceAttr place, const llvm::DenseMap<Operation *, unsigned> &order)
      : whole(whole), place(place), order(order) {}

  LogicalResult build(OpBuilder &builder, ArrayRef<Operation *> own, const strategies::StepNodes &step) {
    SmallVector<Operation *> nodes;
    llvm::DenseSet<Operation *> seen(own.begin(), own.end());
    SmallVector<Operation *> pending(own);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      nodes.push_back(op);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (getPlace(def) && getPlace(def) != place)
          return op->emitError() << "node '" << dfg::getNodeName(op) << "' of server " << place.getIndex()
                                 << " needs the value of node '" << dfg::getNodeName(def)
                                 << "', which another task computes, and nothing sends it";
        if (seen.insert(def).second)
          pending.push_back(def);
      }
    }
    llvm::sort(nodes, [&](Operation *x, Operation *y) { return order.lookup(x) < order.lookup(y); });
    auto graph = dfg::GraphOp::create(builder, whole.getLoc());
    graph->setAttr(dist::kRoleAttr, builder.getStringAttr("server"));
    graph->setAttr(dist::kPlaceAttr, place);
    OpBuilder inside = OpBuilder::atBlockEnd(&graph.getBody().emplaceBlock());
    IRMapping map;
    llvm::StringSet<> names;
    for (Operation *op : nodes)
      names.insert(dfg::getNodeName(op));
    SmallVector<llvm::StringRef> ofStep, ofInit;
    for (Operation *op : nodes) {
      Operation *copy = inside.clone(*op, map);
      copy->removeAttr(dist::kPlaceAttr);
      SmallVector<llvm::StringRef> control = dfg::getControlInputs(op);
      llvm::erase_if(control, [&](llvm::StringRef name) { return !names.contains(name); });
      if (control.empty())
        copy->removeAttr(dfg::kControlAttr);
      else
        copy->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(control));
      if (getPlace(op))
        (!step.isKnown() || step.contains(op) ? ofStep : ofInit).push_back(dfg::getNodeName(op));
    }
    addEndpoint(inside, graph, "train_op", ofStep);
    addEndpoint(inside, graph, "init_op", ofInit);
    return success();
  }

private:
  /// The server's part of an endpoint has the endpoint's name.
  void addEndpoint(OpBuilder &builder, dfg::GraphOp graph, llvm::StringRef attribute, ArrayRef<llvm::StringRef> nodes) {
    auto name = whole->getAttrOfType<StringAttr>(attribute);
    if (!name || nodes.empty())
      return;
    graph->setAttr(attribute, name);
    auto group = dfg::GroupOp::create(builder, NameLoc::get(builder.getStringAttr(name.getValue().split(':').first)));
    group->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(nodes));
  }

  dfg::GraphOp whole;
  dist::PlaceAttr place;
  const llvm::DenseMap<Operation *, unsigned> &order;
};

/// Takes out what no endpoint needs.
void keepEndpoints(dfg::GraphOp graph) {
  strategies::StepNodes step(graph), init(graph, "init_op");
  if (!step.isKnown())
    return;
  llvm::StringSet<> asked;
  auto ask = [&](Attribute attribute) {
    if (auto text = llvm::dyn_cast_or_null<StringAttr>(attribute))
      asked.insert(text.getValue().split(':').first);
  };
  ask(graph->getAttr("loss"));
  for (llvm::StringRef name : {"fetches", "feeds"})
    if (auto list = graph->getAttrOfType<ArrayAttr>(name))
      llvm::for_each(list, ask);
  Block &block = graph.getBody().front();
  SmallVector<Operation *> roots;
  for (Operation &op : block)
    if (step.contains(&op) || init.contains(&op) || asked.contains(dfg::getNodeName(&op)) ||
        llvm::isa<dfg::PlaceholderOp>(op))
      roots.push_back(&op);
  llvm::DenseSet<Operation *> needed = strategies::collectNeeded(block, roots);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!needed.contains(&op))
      op.erase();
}

struct DistSplitRoles : public impl::DistSplitRolesBase<DistSplitRoles> {
  using DistSplitRolesBase::DistSplitRolesBase;

  void runOnOperation() override {
    if (!role.empty() && role != "chief" && role != "worker" && role != "server") {
      getOperation().emitError() << "role=" << role << " is none: there are chief, worker and server";
      return signalPassFailure();
    }
    auto graphs = getOperation().getOps<dfg::GraphOp>();
    if (graphs.empty())
      return;
    dfg::GraphOp graph = *graphs.begin();
    if (graph->hasAttr(dist::kRoleAttr)) {
      graph.emitError("is a role's program already");
      return signalPassFailure();
    }
    if (failed(split(graph)) || failed(select()))
      return signalPassFailure();
  }

private:
  LogicalResult split(dfg::GraphOp graph) {
    llvm::DenseMap<Operation *, unsigned> order;
    llvm::MapVector<Attribute, SmallVector<Operation *>> servers;
    bool hasChief = false;
    for (Operation &op : graph.getBody().front()) {
      order[&op] = order.size();
      if (dist::PlaceAttr place = getPlace(&op); isServer(place))
        servers[place].push_back(&op);
      else
        hasChief |= static_cast<bool>(place);
    }
    // All workers alike: the program stands once for all of them.
    if (servers.empty() && !hasChief)
      return success();
    OpBuilder builder(graph.getContext());
    builder.setInsertionPointAfter(graph);
    strategies::StepNodes step(graph);
    auto ordered = llvm::to_vector(servers.keys());
    llvm::sort(ordered, [](Attribute x, Attribute y) {
      return llvm::cast<dist::PlaceAttr>(x).getIndex() < llvm::cast<dist::PlaceAttr>(y).getIndex();
    });
    auto worker = llvm::cast<dfg::GraphOp>(builder.clone(*graph));
    for (Attribute place : ordered)
      if (failed(ServerGraph(graph, llvm::cast<dist::PlaceAttr>(place), order)
                     .build(builder, servers.find(place)->second, step)))
        return failure();
    for (auto [program, is] : {std::pair(graph, Role::Chief), std::pair(worker, Role::Worker)}) {
      if (failed(pruneForRole(program, is, false)))
        return failure();
      keepEndpoints(program);
      program->setAttr(dist::kRoleAttr, builder.getStringAttr(is == Role::Chief ? "chief" : "worker"));
      for (Operation &op : program.getBody().front())
        op.removeAttr(dist::kPlaceAttr);
    }
    return success();
  }

  /// Only the program that is asked for, with the variables that it names.
  LogicalResult select() {
    if (role.empty())
      return success();
    ModuleOp module = getOperation();
    bool found = false;
    for (auto graph : llvm::make_early_inc_range(module.getOps<dfg::GraphOp>())) {
      auto is = graph->getAttrOfType<StringAttr>(dist::kRoleAttr);
      dist::PlaceAttr place = getPlace(graph);
      bool keep = is ? is.getValue() == role && (!place || place.getIndex() == index) : role != "server";
      found |= keep;
      if (!keep)
        graph.erase();
    }
    if (!found)
      return module.emitError() << "has no program of role " << role << (role == "server" ? " with this index" : "");
    llvm::DenseSet<Attribute> named;
    module.walk([&](dfg::VarHandleOp handle) { named.insert(handle.getVariableAttr().getAttr()); });
    for (auto variable : llvm::make_early_inc_range(module.getOps<dfg::VariableOp>()))
      if (!named.contains(variable.getSymNameAttr()))
        variable.erase();
    return success();
  }
};

} // namespace
} // namespace distc

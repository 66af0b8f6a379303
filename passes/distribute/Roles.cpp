//===- Roles.cpp - What the tasks of a plan run ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/Roles.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

dist::PlaceAttr getPlace(Operation *op) { return op->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr); }
bool isServer(dist::PlaceAttr place) { return place && place.getJob() == "ps"; }

namespace {

class Pruner {
public:
  Pruner(dfg::GraphOp graph, Role role, bool sessions)
      : graph(graph), block(graph.getBody().front()), role(role), sessions(sessions) {}

  LogicalResult run() {
    readEndpoints();
    for (Operation &op : block)
      if (!isRunHere(&op) || llvm::any_of(op.getOperands(), [&](Value operand) { return isGone(operand); }))
        gone.insert(&op);
    if (failed(checkEndpoints()))
      return failure();
    // By name a node is needed by what stays only.
    for (Operation &op : block)
      if (!gone.contains(&op))
        for (llvm::StringRef name : dfg::getControlInputs(&op))
          named.insert(name);
    for (Operation &op : llvm::reverse(block))
      if (!gone.contains(&op) && onlyFedGone(&op))
        gone.insert(&op);
    dropControl();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (gone.contains(&op))
        op.erase();
    return success();
  }

private:
  bool isGone(Value value) const { return gone.contains(value.getDefiningOp()); }

  bool isRunHere(Operation *op) {
    dist::PlaceAttr place = getPlace(op);
    if (!place)
      return true;
    if (!isServer(place))
      return role == Role::Chief;
    auto take = llvm::dyn_cast<dist::TakeOp>(op);
    if ((take && take.getAsync()) ||
        llvm::any_of(op->getOperands(), [&](Value operand) { return unawaited.contains(operand.getDefiningOp()); }))
      unawaited.insert(op);
    return sessions && (role == Role::Chief || unawaited.contains(op));
  }

  void readEndpoints() {
    auto add = [&](Attribute attribute) {
      if (auto text = llvm::dyn_cast_or_null<StringAttr>(attribute))
        named.insert(text.getValue().split(':').first);
    };
    for (llvm::StringRef name : {"train_op", "init_op", "loss"})
      add(graph->getAttr(name));
    for (llvm::StringRef name : {"fetches", "feeds"})
      if (auto list = graph->getAttrOfType<ArrayAttr>(name))
        llvm::for_each(list, add);
    if (auto saver = graph->getAttrOfType<DictionaryAttr>("saver"))
      for (NamedAttribute entry : saver)
        add(entry.getValue());
  }

  LogicalResult checkEndpoints() {
    for (Operation &op : block)
      if (gone.contains(&op) && named.contains(dfg::getNodeName(&op)))
        return op.emitError()
               << "node '" << dfg::getNodeName(&op)
               << "' is asked for, but it needs what only a server computes; ask for the variable, which "
                  "workers pull, or leave it out";
    return success();
  }

  /// Whether nothing but nodes that go used op's results.
  bool onlyFedGone(Operation *op) const {
    if (op->use_empty() || named.contains(dfg::getNodeName(op)) || llvm::isa<dfg::PlaceholderOp>(op))
      return false;
    bool hasNoOtherEffect =
        isMemoryEffectFree(op) || llvm::isa<dfg::ReadVariableOp, dist::PullOp, dist::PullRowsOp>(op);
    return hasNoOtherEffect && llvm::all_of(op->getUsers(), [&](Operation *user) { return gone.contains(user); });
  }

  void dropControl() {
    llvm::StringSet<> goneNames;
    for (Operation *op : gone)
      goneNames.insert(dfg::getNodeName(op));
    Builder builder(graph.getContext());
    for (Operation &op : block) {
      SmallVector<llvm::StringRef> names = dfg::getControlInputs(&op);
      size_t before = names.size();
      llvm::erase_if(names, [&](llvm::StringRef name) { return goneNames.contains(name); });
      if (names.size() == before)
        continue;
      if (names.empty())
        op.removeAttr(dfg::kControlAttr);
      else
        op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(names));
    }
  }

  dfg::GraphOp graph;
  Block &block;
  Role role;
  bool sessions;
  llvm::DenseSet<Operation *> gone, unawaited;
  llvm::StringSet<> named;
};

} // namespace

LogicalResult pruneForRole(dfg::GraphOp graph, Role role, bool sessions) { return Pruner(graph, role, sessions).run(); }

} // namespace distc

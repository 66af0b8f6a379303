//===- Roles.cpp - What the tasks of a plan run ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/servers/Roles.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc {

dist::PlaceAttr getPlace(Operation *op) {
  return llvm::dyn_cast_or_null<dist::PlaceAttr>(op->getDiscardableAttr(dist::kPlaceAttr));
}
bool isServer(dist::PlaceAttr place) { return place && place.getJob() == "ps"; }

Location getPullLocation(dfg::ReadVariableOp read) {
  auto handle = read.getImplicit() ? dfg::getVariableHandle(read.getHandle()) : dfg::VarHandleOp();
  if (!handle)
    return read.getLoc();
  return NameLoc::get(StringAttr::get(read.getContext(), handle.getVariable() + "/pull"));
}

namespace {

class Selection {
public:
  Selection(dfg::GraphOp graph, const NumberedNodes &nodes, Role role, bool sessions)
      : graph(graph), nodes(nodes), role(role), sessions(sessions), kept(nodes.size(), true), unawaited(nodes.size()),
        named(nodes.size()) {}

  LogicalResult run() {
    for (unsigned number = 0; number < nodes.size(); ++number)
      if (!isRunHere(number) || llvm::any_of(nodes.getOperands(number), [&](unsigned from) { return !kept[from]; }))
        kept.reset(number);
    nameEndpoints();
    for (unsigned number : named.set_bits())
      if (!kept[number])
        return nodes[number]->emitError()
               << "node '" << dfg::getNodeName(nodes[number])
               << "' is asked for, but it needs what only a server computes; ask for the variable, which "
                  "workers pull, or leave it out";
    dropFeeders();
    return success();
  }

  llvm::BitVector take() { return std::move(kept); }

private:
  bool isRunHere(unsigned number) {
    dist::PlaceAttr place = getPlace(nodes[number]);
    if (!place)
      return true;
    if (!isServer(place))
      return role == Role::Chief;
    auto take = llvm::dyn_cast<dist::TakeOp>(nodes[number]);
    if ((take && take.getAsync()) ||
        llvm::any_of(nodes.getOperands(number), [&](unsigned from) { return unawaited[from]; }))
      unawaited.set(number);
    return sessions && (role == Role::Chief || unawaited[number]);
  }

  void nameEndpoints() {
    for (unsigned number : nodes.findEndpoints(graph))
      named.set(number);
    if (DictionaryAttr saver = graph.getSaverAttr())
      for (NamedAttribute entry : saver)
        if (unsigned number = nodes.find(entry.getValue()); number != NumberedNodes::kNone)
          named.set(number);
  }

  /// What nothing but nodes that go used goes too.
  void dropFeeders() {
    llvm::BitVector used(nodes.size()), usedHere(nodes.size());
    for (unsigned number = 0; number < nodes.size(); ++number) {
      // By name a node is needed by what stays only.
      if (kept[number])
        for (unsigned before : nodes.getControl(number))
          if (before != NumberedNodes::kNone)
            named.set(before);
      // A loop's way back is used by what comes before it.
      for (unsigned from : nodes.getOperands(number)) {
        used.set(from);
        if (kept[number] && from > number)
          usedHere.set(from);
      }
    }
    for (unsigned number = nodes.size(); number-- > 0;) {
      if (kept[number] && used[number] && !usedHere[number] && !named[number] && hasNoOtherEffect(nodes[number]))
        kept.reset(number);
      if (kept[number])
        for (unsigned from : nodes.getOperands(number))
          usedHere.set(from);
    }
  }

  static bool hasNoOtherEffect(Operation *op) {
    return !llvm::isa<dfg::PlaceholderOp>(op) &&
           (llvm::isa<dfg::ReadVariableOp, dist::PullOp, dist::PullRowsOp>(op) || isMemoryEffectFree(op));
  }

  dfg::GraphOp graph;
  const NumberedNodes &nodes;
  Role role;
  bool sessions;
  llvm::BitVector kept, unawaited;
  /// By endpoints and control edges.
  llvm::BitVector named;
};

} // namespace

FailureOr<llvm::BitVector> findRoleNodes(dfg::GraphOp graph, const NumberedNodes &nodes, Role role, bool sessions) {
  Selection selection(graph, nodes, role, sessions);
  if (failed(selection.run()))
    return failure();
  return selection.take();
}

LogicalResult pruneForRole(dfg::GraphOp graph, Role role, bool sessions) {
  NumberedNodes nodes(graph);
  FailureOr<llvm::BitVector> kept = findRoleNodes(graph, nodes, role, sessions);
  if (failed(kept))
    return failure();
  nodes.keepOnly(*kept);
  return success();
}

} // namespace distc

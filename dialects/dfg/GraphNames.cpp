//===- GraphNames.cpp - What a graph asks of its nodes' names ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphNames.h"
#include "dialects/dfg/NodeNames.h"

using namespace mlir;

namespace distc::dfg {

bool isNamed(Operation *node) {
  auto read = llvm::dyn_cast<ReadVariableOp>(node);
  return !read || !read.getImplicit();
}

/// A name, and the replica that has it: until `dist-rename-scopes` each replica's nodes have the names that the graph
/// had.
static std::pair<Attribute, Attribute> getKey(Attribute name, Operation *op) {
  return {name, op->getDiscardableAttr("dist.replica")};
}

LogicalResult verifyNames(GraphOp graph) {
  // Names are unique attributes: they are compared and hashed as pointers.
  llvm::DenseMap<std::pair<Attribute, Attribute>, Operation *> nodes, again;
  llvm::DenseSet<Attribute> names;
  bool areNamed = true;
  nodes.reserve(graph.getBody().front().getOperations().size());
  for (Operation &op : graph.getBody().front()) {
    if (!isNamed(&op))
      continue;
    StringAttr name = getNodeNameAttr(&op);
    // In text that has no names, a node is told by its place there.
    if (!name && !op.getLoc()->findInstanceOf<FileLineColLoc>())
      return op.emitOpError() << "has no name: its location is the node's name";
    areNamed &= name != nullptr;
    if (!name)
      continue;
    names.insert(name);
    if (auto [first, isNew] = nodes.try_emplace(getKey(name, &op), &op); !isNew)
      again.try_emplace(getKey(name, &op), &op);
  }
  // In words: locations of two nodes with one name do not tell them apart.
  auto refuseTwo = [&](InFlightDiagnostic error, std::pair<Attribute, Attribute> key) -> LogicalResult {
    return error << key.first << ", which a '" << nodes.lookup(key)->getName() << "' and a '"
                 << again.lookup(key)->getName() << "' are called";
  };
  for (Operation &op : graph.getBody().front())
    for (Attribute name : getControl(&op)) {
      if (!names.contains(name))
        return op.emitOpError() << "must run behind " << name << ", which is no node of the graph"
                                << (areNamed
                                        ? ""
                                        : "; nodes without a location have no name, so print must not leave it out");
      if (again.contains(getKey(name, &op)))
        return refuseTwo(op.emitOpError() << "must run behind ", getKey(name, &op));
    }
  auto isOne = [&](Attribute endpoint, StringRef what) -> LogicalResult {
    StringAttr name = getEndpointNode(endpoint);
    if (!name || !again.contains({name, {}}))
      return success();
    return refuseTwo(graph.emitOpError() << what << " is ", {name, {}});
  };
  for (auto [endpoint, what] : {std::pair(graph.getTrainOpAttr(), "train op"),
                                {graph.getInitOpAttr(), "init op"},
                                {graph.getLossAttr(), "loss"}})
    if (failed(isOne(endpoint, what)))
      return failure();
  for (auto [endpoints, what] : {std::pair(graph.getFetchesAttr(), "fetch"), {graph.getFeedsAttr(), "feed"}})
    for (Attribute endpoint : endpoints ? endpoints.getValue() : ArrayRef<Attribute>())
      if (failed(isOne(endpoint, what)))
        return failure();
  return success();
}

namespace {
struct Names : SymbolUserOpInterface::ExternalModel<Names, GraphOp> {
  LogicalResult verifySymbolUses(Operation *graph, SymbolTableCollection &) const {
    return verifyNames(llvm::cast<GraphOp>(graph));
  }
};
} // namespace

void attachNameVerifier(MLIRContext &context) { GraphOp::attachInterface<Names>(context); }

} // namespace distc::dfg

//===- EndpointNodes.cpp - What the endpoints of a graph need ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/EndpointNodes.h"
#include "core/near_names.h"
#include "passes/graph/ListNames.h"

using namespace mlir;

namespace distc {

EndpointNodes::EndpointNodes(dfg::GraphOp graph) : graph(graph) {
  for (Operation &op : graph.getBody().front())
    if (StringRef name = dfg::getNodeName(&op); !name.empty())
      nodes.try_emplace(name, &op);
}

/// " ('w/Read/ReadVariableOp')", the first in the graph, which is the one that the variable was made with.
static std::string listReaders(Operation *handle) {
  Operation *first = nullptr;
  SmallVector<Operation *> pending = {handle};
  while (!pending.empty())
    for (Operation *user : pending.pop_back_val()->getUsers()) {
      if (!llvm::isa<dfg::ReadVariableOp, dfg::IdentityOp>(user))
        continue;
      // A read that a pass has put in has no name; who read the reference now reads that.
      if (dfg::getNodeName(user).empty())
        pending.push_back(user);
      else if (!first || user->isBeforeInBlock(first))
        first = user;
    }
  return first ? " ('" + dfg::getNodeName(first).str() + "')" : std::string();
}

Operation *EndpointNodes::findNode(StringRef name, StringRef kind) {
  name.consume_front("^");
  if (Operation *op = nodes.lookup(name.split(':').first))
    return op;
  std::vector<std::string> known;
  for (auto &entry : nodes)
    known.push_back(entry.getKey().str());
  emitError(graph.getLoc()) << kind << " '" << name << "' is not in the graph"
                            << ::drt::didYouMean(name.split(':').first, known);
  return nullptr;
}

Value EndpointNodes::findTensor(StringRef tensor) {
  auto [name, output] = tensor.split(':');
  Operation *op = findNode(name, "tensor");
  unsigned number = 0;
  if (!op)
    return {};
  if ((tensor.contains(':') && output.getAsInteger(10, number)) || number >= op->getNumResults()) {
    emitError(op->getLoc()) << "node '" << name << "' has " << op->getNumResults()
                            << (op->getNumResults() == 1 ? " output, so" : " outputs, so") << " there is no tensor '"
                            << tensor << "'";
    return {};
  }
  if (!llvm::isa<TensorType>(op->getResult(number).getType())) {
    emitError(op->getLoc()) << "'" << tensor << "' is a variable, which is no tensor: name the node that reads it"
                            << listReaders(op);
    return {};
  }
  return op->getResult(number);
}

SmallVector<Operation *> EndpointNodes::findEndpoints(bool initializes) {
  SmallVector<Operation *> found;
  auto add = [&](Attribute name) {
    auto text = llvm::dyn_cast_or_null<StringAttr>(name);
    StringRef node = text ? text.getValue() : "";
    node.consume_front("^");
    if (Operation *op = node.empty() ? nullptr : nodes.lookup(node.split(':').first))
      found.push_back(op);
  };
  add(graph.getTrainOpAttr());
  if (initializes)
    add(graph.getInitOpAttr());
  add(graph.getLossAttr());
  if (ArrayAttr fetches = graph.getFetchesAttr())
    llvm::for_each(fetches, add);
  return found;
}

FailureOr<DenseSet<Operation *>> EndpointNodes::collect(ArrayRef<Operation *> roots,
                                                        const DenseSet<Operation *> &passedOver) {
  DenseSet<Operation *> needed(roots.begin(), roots.end());
  // What a node with effects waits for: a read behind an identity, which waits for an update, sees it.
  DenseSet<Operation *> awaited;
  SmallVector<Operation *> worklist(roots);
  auto need = [&](Operation *op, bool isAwaited) {
    const bool isNew = needed.insert(op).second;
    if ((isAwaited && awaited.insert(op).second) || isNew)
      worklist.push_back(op);
  };
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    const bool isPure = isMemoryEffectFree(op), isAwaited = awaited.contains(op);
    for (Value operand : op->getOperands())
      need(operand.getDefiningOp(), isPure && isAwaited);
    for (StringRef control : dfg::getControlInputs(op)) {
      Operation *before = nodes.lookup(control);
      if (!before)
        return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op) << "' must run after '" << control
                                       << "', which is not in the graph";
      if (!passedOver.contains(before) || !isPure || isAwaited)
        need(before, !isPure || isAwaited);
    }
  }
  return needed;
}

/// Such a node holds a token of the process that made the graph: its function is not in the graph.
static bool callsPython(StringRef operation) {
  return operation == "PyFunc" || operation == "PyFuncStateless" || operation == "EagerPyFunc";
}

void EndpointNodes::noteMissingCode(const DenseSet<Operation *> &needed, StringRef endpoint) {
  for (Operation &op : graph.getBody().front())
    if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op); opaque && needed.contains(&op)) {
      MissingCode &operation = missing[opaque.getOp()];
      operation.nodes.insert(&op);
      operation.endpoints.insert(endpoint);
    }
}

LogicalResult EndpointNodes::reportMissingCode() {
  if (missing.empty())
    return success();
  const auto &[operation, code] = missing.front();
  Operation *first = code.nodes.front();
  InFlightDiagnostic error = emitError(first->getLoc());
  error << "node '" << dfg::getNodeName(first) << "' (op '" << operation << "') must run for '"
        << code.endpoints.front() << "' but distc has no code for it, for any target; "
        << (callsPython(operation)
                ? "it calls a Python function, which an executable cannot; compute it beforehand and feed it"
                : "fetch or train something that does not need it, or write it with other operations");
  // One report for all of them: who meets one at a time compiles as often as there are.
  if (missing.size() == 1 && code.nodes.size() == 1 && code.endpoints.size() == 1)
    return failure();
  for (const auto &[operation, code] : missing) {
    Diagnostic &note = error.attachNote(code.nodes.front()->getLoc());
    note << "operation '" << operation << "' has no code: node" << (code.nodes.size() == 1 ? "" : "s");
    listNames(note, llvm::map_range(code.nodes, [](Operation *node) { return dfg::getNodeName(node); }));
    note << "; needed by";
    listNames(note, code.endpoints);
  }
  return failure();
}

} // namespace distc

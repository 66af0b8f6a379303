//===- LegalizePulls.cpp - Values that servers hold, for TensorFlow ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A worker reads from the server, or from its copy (proxy): a variable of its own,
// which has the server's value from the init op, from restoring, and from the end
// of each step.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {
namespace {

/// The server's value when `after` is done, in the variable that is the worker's copy.
Operation *refresh(WorkerGraph &worker, const WorkerGraph::Proxy &proxy, llvm::StringRef scope,
                   ArrayRef<Operation *> after) {
  StockNodes &nodes = worker.nodes;
  nodes.setScope(scope);
  dfg::VarHandleOp variable = dfg::getVariableHandle(proxy.handle);
  Type type = worker.variableTypes.lookup(variable.getVariable());
  Value value;
  if (worker.references.contains(variable.getVariable())) {
    // A reference is read where it is used: on the server.
    auto reference = dfg::ReadVariableOp::create(nodes.getBuilder(), variable.getLoc(), type, proxy.handle, true);
    value = nodes.identity("value", reference);
  } else {
    value =
        nodes.get("ReadVariableOp", "value", proxy.handle, type, nodes.attribute("dtype", getElementTypeOrSelf(type)));
  }
  worker.place(value.getDefiningOp(), proxy.place);
  StockNodes::addControl(value.getDefiningOp(), after);
  return worker.assign("assign", proxy.copy, value);
}

/// What the graph's saver runs to restore; null where there is none.
dfg::GroupOp findRestoring(WorkerGraph &worker) {
  DictionaryAttr saver = worker.graph.getSaverAttr();
  auto name = saver ? saver.getAs<StringAttr>("restore") : StringAttr();
  return llvm::dyn_cast_if_present<dfg::GroupOp>(name ? worker.nodes.find(name.getValue()) : nullptr);
}

Value readProxy(WorkerGraph &worker, dist::PullOp pull) {
  WorkerGraph::Proxy &proxy = worker.proxies.find(dfg::getVariableHandle(pull.getHandle()).getVariable())->second;
  StockNodes &nodes = worker.nodes;
  if (!proxy.copy) {
    auto type = llvm::cast<TensorType>(worker.variableTypes.lookup(dfg::getVariableHandle(proxy.handle).getVariable()));
    nodes.setPlace(pull, proxy.scope);
    proxy.copy = worker.addHandle("copy", type);
  }
  nodes.setPlace(pull, dfg::getNodeName(pull));
  Value value = nodes.get("ReadVariableOp", "copy", proxy.copy, pull.getValue().getType(),
                          nodes.attribute("dtype", getElementTypeOrSelf(pull.getValue().getType())));
  proxy.reads.push_back(value.getDefiningOp());
  return value;
}

} // namespace

void findProxies(WorkerGraph &worker) {
  strategies::StepNodes step(worker.graph), init(worker.graph, worker.graph.getInitOpAttr());
  for (auto pull : worker.block.getOps<dist::PullOp>()) {
    dfg::VarHandleOp variable = dfg::getVariableHandle(pull.getHandle());
    // What saves reads the server's.
    if (!pull.getProxy() || !variable || !step.isKnown() || !step.contains(pull)) {
      pull.setProxy(false);
      continue;
    }
    WorkerGraph::Proxy &proxy = worker.proxies[variable.getVariable()];
    proxy.handle = variable.getHandle();
    proxy.place = pull.getPlace();
    proxy.scope = (variable.getVariable() + "/proxy").str();
  }
  for (Operation &op : worker.block) {
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    dfg::VarHandleOp variable =
        update ? dfg::getVariableHandle(op.getOperand(update.getWrittenOperands().front())) : nullptr;
    auto proxy = variable ? worker.proxies.find(variable.getVariable()) : worker.proxies.end();
    if (proxy == worker.proxies.end())
      continue;
    if (step.contains(&op))
      proxy->second.updates.push_back(&op);
    else if (worker.isChief() && init.contains(&op))
      proxy->second.initializers.push_back(&op);
  }
}

void finishProxies(WorkerGraph &worker) {
  if (worker.proxies.empty())
    return;
  StockNodes &nodes = worker.nodes;
  nodes.setPlaceAtEnd("synchronization");
  Operation *restored = nullptr;
  dfg::GroupOp restoring = findRestoring(worker);
  if (restoring) {
    restored = nodes.group("restored", {});
    if (Attribute control = restoring->getAttr(dfg::kControlAttr))
      restored->setAttr(dfg::kControlAttr, control);
  }
  for (auto &[name, proxy] : worker.proxies) {
    worker.initNodes.push_back(refresh(worker, proxy, proxy.scope + "/initial", proxy.initializers));
    SmallVector<Operation *> stepEnds = proxy.updates;
    if (worker.servers.end)
      stepEnds.push_back(worker.servers.end);
    Operation *next = refresh(worker, proxy, proxy.scope + "/next", stepEnds);
    StockNodes::addControl(next, proxy.reads);
    worker.stepNodes.push_back(next);
    if (restoring)
      StockNodes::addControl(restoring, refresh(worker, proxy, proxy.scope + "/restored", restored));
  }
}

LogicalResult legalizePull(WorkerGraph &worker, const Issue &issue) {
  for (Operation *op : issue) {
    auto pull = llvm::cast<dist::PullOp>(op);
    if (pull.getProxy()) {
      worker.replaceNode(op, readProxy(worker, pull).getDefiningOp());
      continue;
    }
    OpBuilder &builder = worker.nodes.getBuilder();
    builder.setInsertionPoint(op);
    dfg::VarHandleOp handle = dfg::getVariableHandle(pull.getHandle());
    // A read that waits for something is a node, on the server: who takes the reference may get the value before.
    const bool isImplicit = handle && worker.references.contains(handle.getVariable()) && dfg::getControl(op).empty();
    auto read =
        dfg::ReadVariableOp::create(builder, op->getLoc(), pull.getValue().getType(), pull.getHandle(), isImplicit);
    worker.replaceNode(op, read);
    worker.place(read, pull.getPlace());
  }
  return success();
}

LogicalResult legalizePullRows(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  for (Operation *op : issue) {
    auto pull = llvm::cast<dist::PullRowsOp>(op);
    OpBuilder &builder = nodes.getBuilder();
    nodes.setPlace(op, dfg::getNodeName(op));
    dfg::VarHandleOp handle = dfg::getVariableHandle(pull.getHandle());
    auto type =
        handle ? llvm::dyn_cast_if_present<TensorType>(worker.variableTypes.lookup(handle.getVariable())) : nullptr;
    if (!type)
      return op->emitOpError() << "is of a variable that is not known";
    Operation *rows;
    if (worker.references.contains(handle.getVariable())) {
      Value value = dfg::ReadVariableOp::create(builder, op->getLoc(), type, pull.getHandle(), true);
      Value axis = nodes.constant("axis", 0);
      worker.place(axis.getDefiningOp(), pull.getPlace());
      rows = dfg::GatherV2Op::create(builder, op->getLoc(), pull.getRows().getType(), value, pull.getIndices(), axis);
    } else {
      rows = nodes.make("ResourceGather", "rows", {pull.getHandle(), pull.getIndices()}, pull.getRows().getType(),
                        {nodes.attribute("dtype", type.getElementType()),
                         nodes.attribute("Tindices", getElementTypeOrSelf(pull.getIndices().getType()))});
    }
    worker.replaceNode(op, rows);
    worker.place(rows, pull.getPlace());
  }
  return success();
}

} // namespace distc

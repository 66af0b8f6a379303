//===- LegalizeShares.cpp - Sharded updates for TensorFlow ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A replica's share of a variable is a variable of its own, flat, which is given
// the variable's elements before each update; behind it shares are gathered and
// make the variable again. Slots exist as shares only; whoever saves reads those of
// all tasks.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {
namespace {

class Shares {
public:
  explicit Shares(WorkerGraph &worker) : worker(worker), nodes(worker.nodes), builder(nodes.getBuilder()) {}

  /// Of all replicas', the local replica's part of `value`, in `type`.
  Value take(Value value, int64_t localReplica, RankedTensorType type) {
    int64_t count = type.getNumElements();
    // What a saver restores does not say its type.
    Value all = nodes.constant("flat/shape", ArrayRef<int32_t>{-1});
    Value flat =
        nodes.get("Reshape", "flat", {value, all}, RankedTensorType::get({ShapedType::kDynamic}, type.getElementType()),
                  {nodes.attribute("T", type.getElementType()), nodes.attribute("Tshape", builder.getI32Type())});
    // All shares together have fewer elements than replicas past the end.
    auto zeros = RankedTensorType::get({worker.replicas}, type.getElementType());
    Value padding =
        nodes.constant("padding", DenseElementsAttr::get(zeros, builder.getZeroAttr(type.getElementType())));
    Value padded = nodes.concat("padded", {flat, padding});
    int64_t begin = (worker.task.getFirstReplica() + localReplica) * count;
    return slice("share", padded, begin, count);
  }

  Value slice(llvm::StringRef name, Value value, int64_t begin, int64_t size) {
    Value from = nodes.constant((name + "/begin").str(), ArrayRef<int32_t>{static_cast<int32_t>(begin)});
    Value length = nodes.constant((name + "/size").str(), ArrayRef<int32_t>{static_cast<int32_t>(size)});
    Type element = getElementTypeOrSelf(value.getType());
    return nodes.get("Slice", name, {value, from, length}, RankedTensorType::get({size}, element),
                     {nodes.attribute("T", element), nodes.attribute("Index", builder.getI32Type())});
  }

  /// Shares of all replicas, joined, as a value of `type`.
  Value restore(Value joined, RankedTensorType type) {
    return nodes.reshape("whole", slice("elements", joined, 0, type.getNumElements()), type.getShape());
  }

  Value makeHandle(llvm::StringRef name, llvm::StringRef sharedName, RankedTensorType type, const std::string &device) {
    auto resource = RankedTensorType::get({}, dfg::ResourceType::get(builder.getContext()));
    auto shape = dfg::TensorShapeAttr::get(builder.getContext(), false, type.getShape());
    Operation *handle = nodes.make("VarHandleOp", name, {}, resource,
                                   {nodes.attribute("dtype", type.getElementType()), nodes.attribute("shape", shape),
                                    nodes.attribute("shared_name", sharedName)});
    handle->setAttr(dfg::kDeviceAttr, builder.getStringAttr(device));
    worker.placed.insert(handle);
    return handle->getResult(0);
  }

  static std::string getSharedName(llvm::StringRef variable, int64_t replica) {
    return (variable + "/share_" + llvm::Twine(replica)).str();
  }

private:
  WorkerGraph &worker;
  StockNodes &nodes;
  OpBuilder &builder;
};

/// The whole slot, from all tasks, for the saver.
Value joinSlot(WorkerGraph &worker, llvm::StringRef variable, RankedTensorType share, RankedTensorType whole,
               Operation *saver) {
  StockNodes &nodes = worker.nodes;
  Shares shares(worker);
  nodes.setPlace(saver, (variable + "/shares").str());
  SmallVector<Value> parts;
  for (dist::TaskAttr task : worker.workers)
    for (int64_t replica = 0; replica < task.getNumReplicas(); ++replica) {
      Value other = shares.makeHandle("handle", Shares::getSharedName(variable, task.getFirstReplica() + replica),
                                      share, WorkerGraph::getDevice(task.getJob(), task.getIndex()));
      Value part = nodes.get("ReadVariableOp", "Read", other, share, nodes.attribute("dtype", share.getElementType()));
      part.getDefiningOp()->setAttr(dfg::kDeviceAttr, other.getDefiningOp()->getAttr(dfg::kDeviceAttr));
      worker.placed.insert(part.getDefiningOp());
      parts.push_back(part);
    }
  return shares.restore(nodes.concat("joined", parts), whole);
}

/// References have no form for a part of a variable: slots that are shares are resources.
void useResource(WorkerGraph &worker, Operation *user) {
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(user); read && read.getImplicit()) {
    read.removeImplicitAttr();
    // It is a node of its own now.
    dfg::VarHandleOp handle = dfg::getVariableHandle(read.getHandle());
    worker.nodes.rename(read, worker.nodes.getUniqueName(((handle ? handle.getVariable() : "share") + "/read").str()));
    return;
  }
  if (llvm::isa<dfg::AssignOp>(user))
    for (llvm::StringRef name : {"use_locking", "T"})
      dfg::removeSourceAttribute(user, name);
}

} // namespace

LogicalResult legalizeReduceScatter(WorkerGraph &worker, const Issue &issue) {
  auto scatter = llvm::cast<dist::ReduceScatterOp>(issue.front());
  FailureOr<SmallVector<Value>> reduced =
      reduceBucket(worker, issue, scatter.getReduction(), scatter.getSpec(), dist::CompressionAttr());
  if (failed(reduced))
    return failure();
  for (auto [replica, op] : llvm::enumerate(issue))
    for (auto [value, share] : llvm::zip(*reduced, op->getResults()))
      share.replaceAllUsesWith(Shares(worker).take(value, replica, llvm::cast<RankedTensorType>(share.getType())));
  return success();
}

LogicalResult legalizeTakeShare(WorkerGraph &worker, const Issue &issue) {
  for (auto [replica, op] : llvm::enumerate(issue)) {
    auto take = llvm::cast<dist::TakeShareOp>(op);
    worker.nodes.setPlace(op, dfg::getNodeName(op));
    auto type = llvm::cast<RankedTensorType>(take.getShare().getType());
    take.getShare().replaceAllUsesWith(Shares(worker).take(take.getValue(), replica, type));
  }
  return success();
}

LogicalResult legalizeShareHandle(WorkerGraph &worker, const Issue &issue) {
  for (auto [replica, op] : llvm::enumerate(issue)) {
    auto share = llvm::cast<dist::ShareHandleOp>(op);
    dfg::VarHandleOp handle = dfg::getVariableHandle(share.getHandle());
    if (!handle)
      return op->emitOpError("is of a variable that is not known");
    auto type = llvm::cast<RankedTensorType>(llvm::cast<dfg::RefType>(share.getShare().getType()).getValueType());
    auto whole = llvm::cast<RankedTensorType>(worker.variableTypes.lookup(handle.getVariable()));
    StockNodes &nodes = worker.nodes;
    nodes.setPlace(op, dfg::getNodeName(op));
    Shares shares(worker);
    std::string name = Shares::getSharedName(handle.getVariable(), worker.task.getFirstReplica() + replica);
    Value own = shares.makeHandle("handle", name, type, worker.getDevice());
    bool isReference = worker.references.contains(handle.getVariable());
    Value value = isReference ? nodes.identity("value", dfg::ReadVariableOp::create(nodes.getBuilder(), op->getLoc(),
                                                                                    whole, share.getHandle(), true))
                              : nodes.get("ReadVariableOp", "value", share.getHandle(), whole,
                                          nodes.attribute("dtype", whole.getElementType()));
    Operation *assign = worker.assign("assign", own, shares.take(value, replica, type));
    for (Operation *user : llvm::make_early_inc_range(share.getShare().getUsers())) {
      StockNodes::addControl(user, assign);
      // What it is of waits for its gradient, and with it for every read of the step.
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(user);
      if (Operation *gradient = update ? user->getOperand(update.getGradientOperand()).getDefiningOp() : nullptr)
        StockNodes::addControl(value.getDefiningOp(), gradient);
      worker.shares[handle.getVariable()].push_back({own, user});
    }
    share.getShare().replaceAllUsesWith(own);
  }
  return success();
}

/// The nodes of a worker's step that read variables which are gathered, before and behind the gather.
struct Readers {
  SmallVector<Operation *> before, behind;
};

static llvm::StringMap<Readers> findReaders(WorkerGraph &worker, dist::AllGatherVariablesOp gather) {
  llvm::StringMap<Readers> readers;
  for (Value handle : gather.getHandles())
    if (dfg::VarHandleOp variable = dfg::getVariableHandle(handle))
      readers.try_emplace(variable.getVariable());
  // Others (evaluation, savers) run without the step, which they must not bring along.
  strategies::StepNodes step(worker.graph);
  bool isBehind = false;
  for (Operation &op : worker.block) {
    isBehind |= &op == gather;
    if (!op.hasTrait<dfg::ReadsVariable>())
      continue;
    dfg::VarHandleOp variable = dfg::getVariableHandle(op.getOperand(0));
    auto found = variable ? readers.find(variable.getVariable()) : readers.end();
    if (found == readers.end())
      continue;
    SmallVector<Operation *> &of = isBehind ? found->second.behind : found->second.before;
    // A reference is read by whoever takes it.
    if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op); read && read.getImplicit())
      llvm::copy_if(read->getUsers(), std::back_inserter(of), [&](Operation *user) { return step.contains(user); });
    else if (step.contains(&op))
      of.push_back(&op);
  }
  return readers;
}

LogicalResult legalizeGatherVariables(WorkerGraph &worker, const Issue &issue) {
  auto gather = llvm::cast<dist::AllGatherVariablesOp>(issue.front());
  if (gather.getOwners())
    return gather.emitOpError("has values that one worker updates for all, as executables do in the place of servers; "
                              "export the graph itself, which is planned with servers then");
  StockNodes &nodes = worker.nodes;
  llvm::StringMap<Readers> readers = findReaders(worker, gather);
  for (Value handle : gather.getHandles()) {
    dfg::VarHandleOp variable = dfg::getVariableHandle(handle);
    if (!variable)
      return gather.emitOpError("is of a variable that is not known");
    auto whole = llvm::cast<RankedTensorType>(worker.variableTypes.lookup(variable.getVariable()));
    auto count = static_cast<int64_t>(llvm::divideCeil(whole.getNumElements(), worker.replicas));
    SmallVector<Value> parts;
    for (auto [share, update] : worker.shares[variable.getVariable()]) {
      Value part = nodes.get("ReadVariableOp", "share", share, RankedTensorType::get({count}, whole.getElementType()),
                             nodes.attribute("dtype", whole.getElementType()));
      StockNodes::addControl(part.getDefiningOp(), update);
      parts.push_back(part);
    }
    if (parts.empty())
      return gather.emitOpError("gathers ") << variable.getVariable() << ", of which no share is updated";
    Value joined = nodes.concat("shares", parts);
    if (worker.workers.size() > 1)
      joined = worker.collective("Gather", joined, dist::Spec::Auto);
    Value value = Shares(worker).restore(joined, whole);
    Operation *assign;
    if (worker.references.contains(variable.getVariable()))
      assign = nodes.make("Assign", "assign", {handle, value}, UnrankedTensorType::get(whole.getElementType()),
                          nodes.attribute("T", whole.getElementType()));
    else
      assign = worker.assign("assign", handle, value);
    // The block's order is that of the one replica's step: old values before, new ones behind.
    const Readers &reads = readers[variable.getVariable()];
    for (Operation *read : reads.before)
      StockNodes::addControl(assign, read);
    for (Operation *read : reads.behind)
      StockNodes::addControl(read, assign);
    worker.aliases[dfg::getNodeName(gather)].push_back(assign);
    // Whoever waits for the update waits for the value.
    worker.stepNodes.push_back(assign);
  }
  return success();
}

/// The slot of one replica has a name of its own; savers are given the whole of it.
void legalizeSlots(WorkerGraph &worker) {
  StockNodes &nodes = worker.nodes;
  llvm::StringMap<std::pair<RankedTensorType, RankedTensorType>> slots;
  for (auto variable : worker.graph->getParentOfType<ModuleOp>().getOps<dfg::VariableOp>())
    if (auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr);
        slice && variable->hasAttr(dist::kSharesAttr)) {
      auto share = llvm::cast<RankedTensorType>(variable.getType());
      slots[variable.getSymName()] = {share,
                                      RankedTensorType::get(slice.getShape().asArrayRef(), share.getElementType())};
    }
  if (slots.empty())
    return;
  SmallVector<dfg::VarHandleOp> handles;
  for (auto handle : worker.block.getOps<dfg::VarHandleOp>())
    if (slots.contains(handle.getVariable()))
      handles.push_back(handle);
  Shares shares(worker);
  llvm::StringMap<Value> wholes;
  for (dfg::VarHandleOp handle : handles) {
    auto [share, whole] = slots[handle.getVariable()];
    llvm::StringRef variable = handle.getVariable();
    llvm::StringRef scope = dfg::getNodeName(handle);
    int64_t local = 0;
    if (scope.consume_front("replica_"))
      scope.consumeInteger(10, local);
    // Savers first: they read the slots of all tasks, or take the reference itself.
    SmallVector<OpOperand *> uses;
    auto addUses = [&](Value value) {
      for (OpOperand &use : value.getUses())
        if (auto saver = llvm::dyn_cast<dfg::OpaqueOp>(use.getOwner()); saver && saver.getOp() == "SaveV2")
          uses.push_back(&use);
    };
    addUses(handle.getHandle());
    for (Operation *read : handle->getUsers())
      if (llvm::isa<dfg::ReadVariableOp>(read))
        addUses(read->getResult(0));
    for (OpOperand *use : uses) {
      Value &value = wholes[variable];
      if (!value)
        value = joinSlot(worker, variable, share, whole, use->getOwner());
      use->set(value);
    }
    for (Operation *user : handle->getUsers())
      useResource(worker, user);
    nodes.setPlace(handle, "");
    std::string name = dfg::getNodeName(handle).str();
    nodes.forget(handle);
    Value own = shares.makeHandle(name, Shares::getSharedName(variable, worker.task.getFirstReplica() + local), share,
                                  worker.getDevice());
    if (Attribute control = handle->getAttr(dfg::kControlAttr))
      own.getDefiningOp()->setAttr(dfg::kControlAttr, control);
    handle.getHandle().replaceAllUsesWith(own);
    handle->erase();
  }
}

} // namespace distc

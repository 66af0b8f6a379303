//===- JoinReplicas.cpp - What a task's replicas show to the outside --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Whoever runs a worker's graph feeds and fetches by the names of the original
// graph, whatever the number of the task's replicas.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Collections.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
namespace {

std::string inReplica(int64_t replica, llvm::StringRef name) {
  return ("replica_" + llvm::Twine(replica) + "/" + name).str();
}

/// The same node of every replica; empty where it has not one in each.
SmallVector<Operation *> findCopies(WorkerGraph &worker, llvm::StringRef name) {
  SmallVector<Operation *> copies;
  for (int64_t replica = 0; replica < worker.taskReplicas; ++replica) {
    Operation *copy = worker.nodes.find(inReplica(replica, name));
    if (!copy)
      return {};
    copies.push_back(copy);
  }
  return copies;
}

/// `count` times the rows, where their number is known.
RankedTensorType joinRows(RankedTensorType type, int64_t count) {
  SmallVector<int64_t> shape(type.getShape());
  if (!type.isDynamicDim(0))
    shape[0] *= count;
  return RankedTensorType::get(shape, type.getElementType());
}

/// One placeholder, split along its first axis.
void joinPlaceholder(WorkerGraph &worker, llvm::StringRef name, ArrayRef<Operation *> copies) {
  StockNodes &nodes = worker.nodes;
  auto type = llvm::dyn_cast<RankedTensorType>(copies.front()->getResult(0).getType());
  if (!type || type.getRank() == 0)
    return;
  nodes.setPlace(copies.front(), name);
  Operation *whole = nodes.getBuilder().clone(*copies.front());
  RankedTensorType joined = joinRows(type, copies.size());
  whole->getResult(0).setType(joined);
  if (llvm::cast<dfg::PlaceholderOp>(whole).getShapeAttr()) {
    SmallVector<int64_t> sizes;
    for (int64_t size : joined.getShape())
      sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
    whole->setAttr("shape", dfg::TensorShapeAttr::get(whole->getContext(), false, sizes));
  }
  nodes.rename(whole, name);
  Value axis = nodes.constant("axis", 0);
  SmallVector<Type> types(copies.size(), type);
  Operation *split = nodes.make(
      "Split", "split", {axis, whole->getResult(0)}, types,
      {nodes.attribute("T", type.getElementType()), nodes.attribute("num_split", static_cast<int64_t>(copies.size()))});
  for (auto [copy, part] : llvm::zip(copies, split->getResults())) {
    std::string own = dfg::getNodeName(copy).str();
    nodes.forget(copy);
    nodes.setPlace(copy, "");
    copy->getResult(0).replaceAllUsesWith(nodes.identity(own, part));
    copy->erase();
  }
}

/// The replicas' parts side by side along an axis other than the first.
Value joinAlong(StockNodes &nodes, ArrayRef<Value> values, int64_t axis) {
  auto type = llvm::cast<RankedTensorType>(values.front().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = ShapedType::kDynamic;
  SmallVector<Value> operands(values);
  operands.push_back(nodes.constant("axis", static_cast<int32_t>(axis)));
  return nodes.get("ConcatV2", "joined", operands, type.clone(shape),
                   {nodes.attribute("N", static_cast<int64_t>(values.size())),
                    nodes.attribute("T", type.getElementType()),
                    nodes.attribute("Tidx", nodes.getBuilder().getI32Type())});
}

/// Along which axis a fetch is joined, and that it is the same in all replicas, the batch's flow says (`join`,
/// dist.joins). Of other nodes a batched tensor is joined in the order of replicas, another of floating point is
/// averaged, also one that is a sum (whoever runs the workers averages over them), the rest is replica 0's.
Value joinValues(StockNodes &nodes, ArrayRef<Value> values, llvm::StringRef join) {
  if (join == "first")
    return values.front();
  int64_t axis = 0;
  if (join.consume_front("concat:") && !join.getAsInteger(10, axis) && axis > 0)
    return joinAlong(nodes, values, axis);
  auto type = llvm::dyn_cast<RankedTensorType>(values.front().getType());
  if (type && type.getRank() > 0 && type.isDynamicDim(0))
    return nodes.concat("joined", values);
  if (type && type.getRank() == 0 && llvm::isa<FloatType>(type.getElementType()))
    return nodes.multiply("mean", nodes.addN("sum", values), 1.0 / values.size());
  return values.front();
}

void joinNode(WorkerGraph &worker, llvm::StringRef name) {
  StockNodes &nodes = worker.nodes;
  if (nodes.find(name))
    return;
  SmallVector<Operation *> copies = findCopies(worker, name);
  if (copies.empty())
    return;
  if (copies.front()->getNumResults() == 0) {
    nodes.setPlaceAtEnd("");
    nodes.group(name, copies);
    return;
  }
  nodes.setPlaceAtEnd((name + "/replicas").str());
  auto joins = worker.graph->getAttrOfType<DictionaryAttr>(dist::kJoinsAttr);
  SmallVector<Value> joined;
  for (unsigned index = 0; index < copies.front()->getNumResults(); ++index) {
    SmallVector<Value> values;
    for (Operation *copy : copies)
      values.push_back(copy->getResult(index));
    auto join = joins ? joins.getAs<StringAttr>((name + ":" + llvm::Twine(index)).str()) : StringAttr();
    joined.push_back(joinValues(nodes, values, join ? join.getValue() : ""));
  }
  nodes.setPlaceAtEnd("");
  if (joined.size() == 1) {
    nodes.identity(name, joined.front());
    return;
  }
  SmallVector<Type> types, elementTypes;
  for (Value value : joined) {
    types.push_back(value.getType());
    elementTypes.push_back(getElementTypeOrSelf(value.getType()));
  }
  nodes.make("IdentityN", name, joined, types, nodes.types("T", elementTypes));
}

/// Nodes that something outside of the graph names: endpoints, collections.
std::vector<std::string> findNamed(dfg::GraphOp graph) {
  std::vector<std::string> names;
  for (StringAttr name : {graph.getLossAttr(), graph.getTrainOpAttr(), graph.getInitOpAttr()})
    if (name)
      names.push_back(name.str());
  if (ArrayAttr fetches = graph.getFetchesAttr())
    for (auto name : fetches.getAsRange<StringAttr>())
      names.push_back(name.str());
  llvm::append_range(names, tf::getCollectedNames(graph));
  // A map's order is not the same every time.
  llvm::sort(names);
  for (std::string &name : names)
    name = llvm::StringRef(name).split(':').first.str();
  names.erase(llvm::unique(names), names.end());
  return names;
}

/// Variables of which each replica has a share are no one's whole variable: collections do not name them.
void dropGoneVariables(WorkerGraph &worker) {
  auto exists = [&](llvm::StringRef name) { return worker.nodes.find(name.split(':').first) != nullptr; };
  auto drop = [&](llvm::StringRef key, const tf::CollectedVariable &entry) {
    const bool ofVariables =
        llvm::is_contained({"variables", "trainable_variables", "local_variables", "model_variables"}, key);
    return ofVariables && !(exists(entry.variable) && exists(entry.initializer))
               ? std::optional(std::vector<tf::CollectedVariable>())
               : std::nullopt;
  };
  tf::editCollections(worker.graph, {nullptr, drop});
}

} // namespace

LogicalResult joinReplicas(WorkerGraph &worker) {
  if (worker.taskReplicas == 1)
    return success();
  SmallVector<std::string> fed;
  for (auto placeholder : worker.block.getOps<dfg::PlaceholderOp>())
    if (llvm::StringRef name = dfg::getNodeName(placeholder); name.consume_front("replica_0/"))
      fed.push_back(name.str());
  for (const std::string &name : fed)
    if (SmallVector<Operation *> copies = findCopies(worker, name); !copies.empty())
      joinPlaceholder(worker, name, copies);
  for (const std::string &name : findNamed(worker.graph))
    joinNode(worker, name);
  dropGoneVariables(worker);
  return success();
}

} // namespace distc

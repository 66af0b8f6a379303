//===- WorkerGraph.cpp - One worker's graph on its way to TensorFlow --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "dialects/dfg/Frames.h"

using namespace mlir;

namespace distc {

/// The only group: all tasks that run replicas.
constexpr int32_t kGroupKey = 1;

WorkerGraph::WorkerGraph(dfg::GraphOp graph, dist::TopologyOp topology, dist::TaskAttr task,
                         ArrayRef<dist::TaskAttr> workers)
    : Exchange(graph.getBody().front(), topology.getReplicas()), graph(graph), block(graph.getBody().front()),
      task(task), workers(workers), taskReplicas(task.getNumReplicas()) {
  for (auto member : topology.getTasks().getAsRange<dist::TaskAttr>())
    tasks.insert({member.getJob(), member.getIndex()});
  for (auto variable : graph->getParentOfType<ModuleOp>().getOps<dfg::VariableOp>()) {
    variableTypes[variable.getSymName()] = variable.getType();
    if (variable.getKind() == "ref")
      references.insert(variable.getSymName());
    if (auto place = variable->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr))
      places[variable.getSymName()] = place;
  }
}

std::string WorkerGraph::getDevice(llvm::StringRef job, int64_t index) {
  return ("/job:" + job + "/task:" + llvm::Twine(index)).str();
}

int64_t WorkerGraph::getLocalReplica(llvm::StringRef name) {
  int64_t replica = 0;
  if (name.consume_front("replica_"))
    name.consumeInteger(10, replica);
  return replica;
}

void WorkerGraph::place(Operation *op, dist::PlaceAttr place) {
  op->setAttr(dfg::kDeviceAttr, nodes.getBuilder().getStringAttr(getDevice(place.getJob(), place.getIndex())));
  placed.insert(op);
}

void WorkerGraph::replaceNode(Operation *op, Operation *node) {
  std::string name = dfg::getNodeName(op).str();
  nodes.forget(op);
  bool implicit = llvm::isa<dfg::ReadVariableOp>(node) && llvm::cast<dfg::ReadVariableOp>(node).getImplicit();
  if (!name.empty() && !implicit)
    nodes.rename(node, name);
  if (Attribute control = op->getAttr(dfg::kControlAttr))
    node->setAttr(dfg::kControlAttr, control);
  op->replaceAllUsesWith(node->getResults());
}

Value WorkerGraph::addHandle(llvm::StringRef name, TensorType type) {
  OpBuilder &builder = nodes.getBuilder();
  auto resource = RankedTensorType::get({}, dfg::ResourceType::get(builder.getContext()));
  SmallVector<int64_t> sizes;
  if (type.hasRank())
    for (int64_t size : type.getShape())
      sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  auto shape = dfg::TensorShapeAttr::get(builder.getContext(), !type.hasRank(), sizes);
  Operation *handle = nodes.make("VarHandleOp", name, {}, resource,
                                 {nodes.attribute("dtype", type.getElementType()), nodes.attribute("shape", shape)});
  dfg::setSourceAttribute(handle, "shared_name", builder.getStringAttr(dfg::getNodeName(handle)));
  return handle->getResult(0);
}

Value WorkerGraph::addVariable(llvm::StringRef name, DenseElementsAttr value, bool growing) {
  SmallVector<int64_t> sizes(value.getType().getShape());
  if (growing)
    sizes[0] = ShapedType::kDynamic;
  Value handle = addHandle(name, RankedTensorType::get(sizes, value.getElementType()));
  Value initial = nodes.constant((name + "/initial").str(), value);
  initNodes.push_back(assign((name + "/Assign").str(), handle, initial));
  return handle;
}

Value WorkerGraph::read(llvm::StringRef name, Value handle) {
  auto type = dfg::getSourceAttribute<TypeAttr>(handle.getDefiningOp(), "dtype").getValue();
  auto shape = dfg::getSourceAttribute<dfg::TensorShapeAttr>(handle.getDefiningOp(), "shape");
  SmallVector<int64_t> sizes(shape.getSizes());
  for (int64_t &size : sizes)
    size = size < 0 ? ShapedType::kDynamic : size;
  return nodes.get("ReadVariableOp", name, handle, RankedTensorType::get(sizes, type), nodes.attribute("dtype", type));
}

Operation *WorkerGraph::assign(llvm::StringRef name, Value handle, Value value) {
  return nodes.make("AssignVariableOp", name, {handle, value}, {},
                    nodes.attribute("dtype", getElementTypeOrSelf(value.getType())));
}

Value WorkerGraph::collective(llvm::StringRef kind, Value value, dist::Spec spec) {
  ++collectives;
  if (StockNodes::hasStaticShape(value))
    return issueCollective(kind, value, spec, kGroupKey, /*instance=*/{});
  // TensorFlow keeps an instance's shape. Where data decide it (the number of distinct rows, the longest sequence of a
  // batch), each size is an instance of its own, of a group that has no others.
  Type integer = nodes.getBuilder().getI32Type(), element = getElementTypeOrSelf(value.getType());
  auto ranked = llvm::dyn_cast<RankedTensorType>(value.getType());
  SmallVector<NamedAttribute> attributes = {nodes.attribute("T", element), nodes.attribute("out_type", integer)};
  // What is known of the sizes TensorFlow is told: gradients that it wrote for known sizes are nodes that need them.
  const bool onlyRowsOpen =
      ranked && ranked.getNumDynamicDims() == 1 && ranked.isDynamicDim(0) && !llvm::is_contained(ranked.getShape(), 0);
  Value shape;
  if (!onlyRowsOpen)
    shape = nodes.get("Shape", "shape", value,
                      RankedTensorType::get({ranked ? ranked.getRank() : ShapedType::kDynamic}, integer), attributes);
  Value flat = nodes.reshape("flat", value, {-1});
  Value size = nodes.get("Size", "size", flat, RankedTensorType::get({}, integer), attributes);
  Value arrived = issueCollective(kind, flat, spec, kGroupKey + collectives, size);
  Type type = value.getType();
  if (kind == "Gather") {
    // The workers' rows lie behind each other.
    auto factors = SmallVector<int32_t>(ranked ? ranked.getRank() : 0, 1);
    if (!factors.empty())
      factors.front() = static_cast<int32_t>(workers.size());
    if (shape)
      shape = nodes.binary("Mul", "gathered/shape", shape, nodes.constant("workers", factors));
    type = getGathered(value.getType());
  }
  if (!shape) {
    SmallVector<int32_t> sizes(ranked.getShape());
    sizes.front() = -1;
    shape = nodes.constant("sizes", sizes);
  }
  return nodes.get("Reshape", "shaped", {arrived, shape}, type,
                   {nodes.attribute("T", element), nodes.attribute("Tshape", integer)});
}

Type WorkerGraph::getGathered(Type type) const {
  auto ranked = llvm::dyn_cast<RankedTensorType>(type);
  if (!ranked || ranked.isDynamicDim(0))
    return type;
  SmallVector<int64_t> shape(ranked.getShape());
  shape[0] *= static_cast<int64_t>(workers.size());
  return RankedTensorType::get(shape, ranked.getElementType());
}

bool WorkerGraph::isOfLastBatch(Value value) const {
  if (gates.empty())
    return false;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> pending = {value.getDefiningOp()};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!op || !seen.insert(op).second)
      continue;
    // A Merge runs with what it waits for dead.
    if (gates.contains(op))
      return true;
    for (Value operand : op->getOperands())
      pending.push_back(operand.getDefiningOp());
    if (dfg::getKind(op) != "Merge")
      for (llvm::StringRef before : dfg::getControlInputs(op))
        pending.push_back(nodes.find(before));
  }
  return false;
}

Operation *WorkerGraph::meetAtEachBatch() {
  Value last = batches.begin()->second.isLast;
  Type flag = last.getType();
  NamedAttribute type = nodes.attribute("T", getElementTypeOrSelf(flag));
  Operation *choice = nodes.make("Switch", "switch", {last, last}, {flag, flag}, type);
  auto index = RankedTensorType::get({}, IntegerType::get(flag.getContext(), 32));
  return nodes.make("Merge", "merge", choice->getResults(), {flag, index}, {type, nodes.attribute("N", int64_t(2))});
}

Value WorkerGraph::issueCollective(llvm::StringRef kind, Value value, dist::Spec spec, int32_t groupKey,
                                   Value instance) {
  bool gathers = kind == "Gather";
  Type type = gathers ? getGathered(value.getType()) : value.getType();
  bool onGpu = llvm::cast<StringAttr>(task.getDevices()[0]).getValue().contains(":GPU:");
  llvm::StringRef hint = spec == dist::Spec::Ring ? "ring" : spec == dist::Spec::Nccl && onGpu ? "nccl" : "auto";
  SmallVector<NamedAttribute> attributes = {nodes.attribute("T", getElementTypeOrSelf(value.getType())),
                                            nodes.attribute("communication_hint", hint)};
  if (!gathers) {
    attributes.push_back(nodes.attribute("merge_op", "Add"));
    attributes.push_back(nodes.attribute("final_op", "Id"));
  }
  Value size = nodes.constant("group_size", static_cast<int32_t>(workers.size()));
  Value group = nodes.constant("group_key", groupKey);
  if (!instance)
    instance = nodes.constant("instance_key", collectives);
  Operation *op =
      nodes.make(("Collective" + kind + "V2").str(), "collective", {value, size, group, instance}, type, attributes);
  // Every task issues its collectives in the order of the block. One of each batch must not be dead with one of an
  // update's last batch before it.
  const bool isOfLast = isOfLastBatch(value);
  if (lastCollective && lastCollectiveIsOfLastBatch && !isOfLast) {
    Operation *merge = meetAtEachBatch();
    StockNodes::addControl(merge, lastCollective);
    StockNodes::addControl(op, merge);
  } else if (lastCollective) {
    StockNodes::addControl(op, lastCollective);
  }
  lastCollective = op;
  lastCollectiveIsOfLastBatch = isOfLast;
  return op->getResult(0);
}

} // namespace distc

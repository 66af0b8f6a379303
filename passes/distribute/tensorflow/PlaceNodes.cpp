//===- PlaceNodes.cpp - The device of every node of a worker's graph --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Colocations.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {
namespace {

/// What a device says beside its task: "/device:GPU:1" of "/job:worker/task:0/device:GPU:1".
std::string getLocalPart(llvm::StringRef device) {
  SmallVector<llvm::StringRef> parts;
  device.split(parts, '/', -1, /*KeepEmpty=*/false);
  std::string local;
  for (llvm::StringRef part : parts)
    if (!part.starts_with("job:") && !part.starts_with("replica:") && !part.starts_with("task:"))
      local += ("/" + part).str();
  return local;
}

/// The server that holds the variable that `op` is or works on, or where it computes.
dist::PlaceAttr findPlace(const WorkerGraph &worker, Operation *op) {
  if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
    return worker.getPlace(handle.getVariable());
  for (Value operand : op->getOperands())
    if (dfg::isHandle(operand.getType()))
      if (dfg::VarHandleOp handle = dfg::getVariableHandle(operand))
        return worker.getPlace(handle.getVariable());
  return op->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr);
}

/// On accelerators each replica has a device of its own.
std::string getReplicaDevice(const WorkerGraph &worker, Operation *op) {
  auto devices = worker.task.getDevices();
  int64_t replica = WorkerGraph::getLocalReplica(dfg::getNodeName(op));
  llvm::StringRef device = llvm::cast<StringAttr>(devices[std::min<size_t>(replica, devices.size() - 1)]).getValue();
  auto [rest, number] = device.rsplit(':');
  return rest.ends_with(":GPU") ? ("/device:GPU:" + number).str() : "";
}

/// What an author colocated with a variable is not where its server is; a node that was inlined may name one that is
/// gone.
void updateColocation(const WorkerGraph &worker, Operation *op) {
  dfg::mapColocations(op, [&](llvm::StringRef name) {
    bool stays = !worker.hasPlaces() && worker.nodes.find(name);
    return stays ? SmallVector<std::string>{name.str()} : SmallVector<std::string>();
  });
}

/// The shapes that the author's graph notes on a node are what Python knew of them, where TensorFlow's inference of an
/// import knows less (a reshape to sizes that are computed), and other nodes are refused for it. Of a share they are
/// the results' own.
void noteShapes(Operation *op, Builder &builder) {
  constexpr llvm::StringLiteral kNote = "_output_shapes";
  auto noted = dfg::getSourceAttribute<ArrayAttr>(op, kNote);
  if (!noted)
    return;
  SmallVector<Attribute> shapes;
  for (Type type : op->getResultTypes())
    if (auto tensor = llvm::dyn_cast<RankedTensorType>(type)) {
      SmallVector<int64_t> sizes(tensor.getShape());
      llvm::replace(sizes, ShapedType::kDynamic, int64_t(-1));
      shapes.push_back(dfg::TensorShapeAttr::get(builder.getContext(), /*unknownRank=*/false, sizes));
    }
  if (shapes.size() == op->getNumResults() && shapes.size() == noted.size())
    dfg::setSourceAttribute(op, kNote, builder.getArrayAttr(shapes));
  else
    dfg::removeNotedShapes(op);
}

} // namespace

void placeNodes(WorkerGraph &worker) {
  Builder builder(worker.graph.getContext());
  std::string own = worker.getDevice();
  for (Operation &op : worker.block) {
    updateColocation(worker, &op);
    noteShapes(&op, builder);
    if (worker.placed.contains(&op))
      continue;
    if (dist::PlaceAttr place = findPlace(worker, &op)) {
      worker.place(&op, place);
      continue;
    }
    auto asked = op.getAttrOfType<StringAttr>(dfg::kDeviceAttr);
    std::string local = asked ? getLocalPart(asked.getValue()) : "";
    op.setAttr(dfg::kDeviceAttr, builder.getStringAttr(own + (local.empty() ? getReplicaDevice(worker, &op) : local)));
  }
}

} // namespace distc

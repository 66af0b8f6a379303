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

} // namespace

void placeNodes(WorkerGraph &worker) {
  Builder builder(worker.graph.getContext());
  std::string own = worker.getDevice();
  for (Operation &op : worker.block) {
    updateColocation(worker, &op);
    dfg::removeNotedShapes(&op);
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
